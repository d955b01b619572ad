"use strict";
// Every tensor of an attention and every gradient: its name, its formula, and how each of its cells is computed.

const AN_INPUT = "An input of the attention.";
const MASKED = "Masked: this query may not attend to this key.";
const NOTHING_BACK = "Masked: the score is not used, so nothing comes back.";

const PROJECTIONS = [
  {letter: "Q", source: "X", path: "Xq", tokens: "query", plural: "queries", formula: "Q = X W_Q + b_Q"},
  {letter: "K", source: "M", path: "Xk", tokens: "key", plural: "keys", formula: "K = M W_K + b_K"},
  {letter: "V", source: "M", path: "Xv", tokens: "key", plural: "values", formula: "V = M W_V + b_V"},
];
const MASKING = "S̄ = S where the mask allows, −∞ elsewhere";
const JOINING = "C = the O of all heads, side by side";
const OUTPUT = "Y = C W_O + b_O";
const SCALE = constant("1/√d_k", ({scale}) => scale);

/** What a head makes its queries, keys or values of, and with which weights. */
function tensorsOfProjection({letter, source, path, tokens, plural, formula}) {
  const [weight, bias] = [`W${letter}`, `b${letter}`];
  return {
    // X or M, kept apart from the other ways in which it is read.
    [path]: {
      label: `${source} via ${letter}`, name: `input, by way of the ${plural}`, axes: [tokens, "model"],
      forward: source, rule: given(path, AN_INPUT),
      next: formula, backward: `d${source} = d${letter} W_${letter}ᵀ`, gradientRule: product(`d${letter}`, `${weight}ᵀ`),
    },
    [weight]: {
      label: `W_${letter}`, name: `weight of the ${plural}`, axes: ["model", "feature"],
      forward: `W_${letter}`, rule: given(weight, A_PARAMETER),
      next: formula, backward: `dW_${letter} = ${source}ᵀ d${letter}`,
      gradientRule: product(`${source}ᵀ`, `d${letter}`, {overBatch: true}),
    },
    [bias]: {
      label: `b_${letter}`, name: `bias of the ${plural}`, axes: ["one", "feature"],
      forward: `b_${letter}`, rule: given(bias, A_PARAMETER),
      next: formula, backward: `db_${letter} = the sum of the rows of d${letter}`,
      gradientRule: rowsOfBatch(`d${letter}`),
    },
  };
}

const ATTENTION_TENSORS = withGradients({
  X: {
    label: "X", name: "input of the queries", axes: ["query", "model"],
    forward: "X", rule: given("X", AN_INPUT),
    next: ({selfAttention}) => (selfAttention ? PROJECTIONS : PROJECTIONS.slice(0, 1)).map(({formula}) => formula).join(",  "),
    backward: ({selfAttention}) => `dX = Σ ${selfAttention ? "(dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ)" : "dQ W_Qᵀ"} over the heads`,
    gradientRule: pathsOfHeads(({selfAttention}) => (selfAttention ? ["dXq", "dXk", "dXv"] : ["dXq"])),
  },
  M: {
    label: "M", name: "memory", axes: ["key", "model"],
    forward: "M", rule: given("M", AN_INPUT),
    next: "K = M W_K + b_K,  V = M W_V + b_V",
    backward: "dM = Σ (dK W_Kᵀ + dV W_Vᵀ) over the heads", gradientRule: pathsOfHeads(() => ["dXk", "dXv"]),
  },

  ...Object.assign({}, ...PROJECTIONS.map(tensorsOfProjection)),

  Q: {
    label: "Q", name: "queries", axes: ["query", "feature"],
    forward: PROJECTIONS[0].formula, rule: product("X", "WQ", {bias: "bQ"}),
    next: "R = Q Kᵀ", backward: "dQ = dR K", gradientRule: product("dR", "K"),
  },
  K: {
    label: "K", name: "keys", axes: ["key", "feature"],
    forward: PROJECTIONS[1].formula, rule: product("M", "WK", {bias: "bK"}),
    next: "R = Q Kᵀ", backward: "dK = dRᵀ Q", gradientRule: product("dRᵀ", "Q"),
  },
  V: {
    label: "V", name: "values", axes: ["key", "feature"],
    forward: PROJECTIONS[2].formula, rule: product("M", "WV", {bias: "bV"}),
    next: "O = A V", backward: "dV = Aᵀ dO", gradientRule: product("Aᵀ", "dO"),
  },
  R: {
    label: "R", name: "scores", axes: ["query", "key"],
    forward: "R = Q Kᵀ", rule: product("Q", "Kᵀ"),
    next: "S = R/√d_k", backward: "dR = dS/√d_k", gradientRule: each(entry("dS"), SCALE),
  },
  S: {
    label: "S", name: "scaled scores", axes: ["query", "key"],
    forward: "S = R/√d_k", rule: each(entry("R"), SCALE),
    next: MASKING, backward: "dS = dS̄ where the mask allows, 0 elsewhere",
    gradientRule: unlessMasked("dSm", 0, NOTHING_BACK),
  },
  Sm: {
    label: "S̄", name: "masked scores", axes: ["query", "key"],
    forward: MASKING, rule: unlessMasked("S", -Infinity, MASKED),
    next: "A = softmax(S̄)", backward: "dS̄ = A∘(dA − D)", gradientRule: each(entry("A"), lessColumn("dA", "D")),
  },
  A: {
    label: "A", name: "weights", axes: ["query", "key"],
    forward: "A = softmax(S̄)", rule: softmaxOf("Sm", "S̄"),
    next: "O = A V", backward: "dA = dO Vᵀ", gradientRule: product("dO", "Vᵀ"),
  },
  O: {
    label: "O", name: "output of the head", axes: ["query", "feature"],
    forward: "O = A V", rule: product("A", "V"),
    next: JOINING, backward: "dO = the head's columns of dC", gradientRule: ownColumns("dC"),
  },
  C: {
    label: "C", name: "outputs of all heads", axes: ["query", "model"],
    forward: JOINING, rule: joinHeads("O"),
    next: OUTPUT, backward: "dC = G W_Oᵀ", gradientRule: product("G", "WOᵀ"),
  },
  WO: {
    label: "W_O", name: "weight of the output", axes: ["model", "model"],
    forward: "W_O", rule: given("WO", A_PARAMETER),
    next: OUTPUT, backward: "dW_O = Cᵀ G", gradientRule: product("Cᵀ", "G", {overBatch: true}),
  },
  bO: {
    label: "b_O", name: "bias of the output", axes: ["one", "model"],
    forward: "b_O", rule: given("bO", A_PARAMETER),
    next: OUTPUT, backward: "db_O = the sum of the rows of G", gradientRule: rowsOfBatch("G"),
  },
  Y: {
    label: "Y", name: "output", axes: ["query", "model"],
    forward: OUTPUT, rule: product("C", "WO", {bias: "bO"}),
    next: "what comes after the attention", backward: "dY = G", gradientRule: given("dY", ARRIVES),
  },
});
Object.assign(ATTENTION_TENSORS, {
  G: {...ATTENTION_TENSORS.dY, symbol: "G", label: "G", rule: given("G", ARRIVES)},
  D: {
    symbol: "D", label: "D", name: "sum of A∘dA, by row", rowsAre: "query", colsAre: "one",
    forward: "A = softmax(S̄)", backward: "Dᵢ = Σⱼ Aᵢⱼ dAᵢⱼ", rule: rowDotOf("A", "dA"),
  },
  // What a mistake made on purpose computes in place of A: see faults/breakages.js.
  unmaskedA: {
    symbol: "unmaskedA", label: "Ã", name: "weights without the mask", rowsAre: "query", colsAre: "key",
    forward: "Ã = softmax(S)", rule: softmaxOf("S"),
  },
});
