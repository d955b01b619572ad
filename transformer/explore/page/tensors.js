"use strict";
// Every tensor of an attention and every gradient: its name, its formula, and how each of its cells is computed.
//
// How to use:
//   TENSORS[symbol] -> {symbol, label, name, rowsAre, colsAre, forward, backward, rule}
//       label    as on paper: "A′" for Ad, "dS̄" for dSm
//       rowsAre, colsAre  "query" or "key" (tokens), "feature" (of the head), "model" (of all heads) or "one"
//       forward  of a tensor, the formula that makes it; of a gradient, that of the step which it comes back through
//       backward the formula of the gradient: of the tensor, or of the one itself
//                (each a text, or a function of the problem that gives it: spell() in cells.js)
//       rule     how each cell comes about (rules.js)
//   factsOf(symbol, problem) -> the same; of a core, Q, K and V are given, and so is the gradient where it ends
//
// The matrices of a result are read by these symbols, and their cells explained, in cells.js.

const TENSORS = {};

/** A tensor, which `forward` and `rule` make, and its gradient, which comes back through the formula `next`. */
function defineTensor(symbol, {label, name, axes: [rowsAre, colsAre], forward, rule, next, backward, gradientRule}) {
  const shared = {rowsAre, colsAre, backward};
  TENSORS[symbol] = {symbol, label, name, ...shared, forward, rule};
  const gradient = {symbol: `d${symbol}`, label: `d${label}`, name: `gradient of the ${name}`};
  TENSORS[`d${symbol}`] = {...gradient, ...shared, forward: next, rule: gradientRule};
}

const AN_INPUT = "An input of the attention.";
const A_PARAMETER = "A parameter: the model learnt it.";
const ARRIVES = "What arrives from the rest of the model: the engine's gradient of the loss.";
const MASKED = "Masked: this query may not attend to this key.";
const NOTHING_BACK = "Masked: the score is not used, so nothing comes back.";

const PROJECTIONS = [
  {letter: "Q", source: "X", path: "Xq", tokens: "query", plural: "queries", formula: "Q = X W_Q + b_Q"},
  {letter: "K", source: "M", path: "Xk", tokens: "key", plural: "keys", formula: "K = M W_K + b_K"},
  {letter: "V", source: "M", path: "Xv", tokens: "key", plural: "values", formula: "V = M W_V + b_V"},
];
const MASKING = "S̄ = S where the mask allows, −∞ elsewhere";
const DROPOUT = "A′ = A∘kept/(1 − p)";
const JOINING = "C = the O of all heads, side by side";
const OUTPUT = "Y = C W_O + b_O";
/** A gradient sums over the heads that share its tensor. */
const overSharing = (symbol, formula) => ({sharing}) => (
  symbol in sharing ? `${formula.replace("= ", "= Σ ")} over the heads that share ${symbol}` : formula);
const SCALE = constant("1/√d_k", ({scale}) => scale);

defineTensor("X", {
  label: "X", name: "input of the queries", axes: ["query", "model"],
  forward: "X", rule: given("X", AN_INPUT),
  next: ({selfAttention}) => (selfAttention ? PROJECTIONS : PROJECTIONS.slice(0, 1)).map(({formula}) => formula).join(",  "),
  backward: ({selfAttention}) => `dX = Σ ${selfAttention ? "(dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ)" : "dQ W_Qᵀ"} over the heads`,
  gradientRule: pathsOfHeads(({selfAttention}) => (selfAttention ? ["dXq", "dXk", "dXv"] : ["dXq"])),
});
defineTensor("M", {
  label: "M", name: "memory", axes: ["key", "model"],
  forward: "M", rule: given("M", AN_INPUT),
  next: "K = M W_K + b_K,  V = M W_V + b_V",
  backward: "dM = Σ (dK W_Kᵀ + dV W_Vᵀ) over the heads", gradientRule: pathsOfHeads(() => ["dXk", "dXv"]),
});

for (const {letter, source, path, tokens, plural, formula} of PROJECTIONS) {
  const [weight, bias] = [`W${letter}`, `b${letter}`];
  // What a head makes its queries, keys or values of: X or M, kept apart from the other ways in which it is read.
  defineTensor(path, {
    label: `${source} via ${letter}`, name: `input, by way of the ${plural}`, axes: [tokens, "model"],
    forward: source, rule: given(path, AN_INPUT),
    next: formula, backward: `d${source} = d${letter} W_${letter}ᵀ`, gradientRule: product(`d${letter}`, `${weight}ᵀ`),
  });
  defineTensor(weight, {
    label: `W_${letter}`, name: `weight of the ${plural}`, axes: ["model", "feature"],
    forward: `W_${letter}`, rule: given(weight, A_PARAMETER),
    next: formula, backward: `dW_${letter} = ${source}ᵀ d${letter}`,
    gradientRule: product(`${source}ᵀ`, `d${letter}`, {overBatch: true}),
  });
  defineTensor(bias, {
    label: `b_${letter}`, name: `bias of the ${plural}`, axes: ["one", "feature"],
    forward: `b_${letter}`, rule: given(bias, A_PARAMETER),
    next: formula, backward: `db_${letter} = the sum of the rows of d${letter}`,
    gradientRule: rowsOfBatch(`d${letter}`),
  });
}

defineTensor("Q", {
  label: "Q", name: "queries", axes: ["query", "feature"],
  forward: PROJECTIONS[0].formula, rule: product("X", "WQ", {bias: "bQ"}),
  next: "R = Q Kᵀ", backward: overSharing("Q", "dQ = dR K"), gradientRule: product("dR", "K", {shared: "Q"}),
});
defineTensor("K", {
  label: "K", name: "keys", axes: ["key", "feature"],
  forward: PROJECTIONS[1].formula, rule: product("M", "WK", {bias: "bK"}),
  next: "R = Q Kᵀ", backward: overSharing("K", "dK = dRᵀ Q"), gradientRule: product("dRᵀ", "Q", {shared: "K"}),
});
defineTensor("V", {
  label: "V", name: "values", axes: ["key", "feature"],
  forward: PROJECTIONS[2].formula, rule: product("M", "WV", {bias: "bV"}),
  next: "O = A′ V", backward: overSharing("V", "dV = A′ᵀ dO"), gradientRule: product("Adᵀ", "dO", {shared: "V"}),
});
defineTensor("R", {
  label: "R", name: "scores", axes: ["query", "key"],
  forward: "R = Q Kᵀ", rule: product("Q", "Kᵀ"),
  next: "S = R/√d_k", backward: "dR = dS/√d_k", gradientRule: each(entry("dS"), SCALE),
});
defineTensor("S", {
  label: "S", name: "scaled scores", axes: ["query", "key"],
  forward: "S = R/√d_k", rule: each(entry("R"), SCALE),
  next: MASKING, backward: "dS = dS̄ where the mask allows, 0 elsewhere",
  gradientRule: unlessMasked("dSm", 0, NOTHING_BACK),
});
defineTensor("Sm", {
  label: "S̄", name: "masked scores", axes: ["query", "key"],
  forward: MASKING, rule: unlessMasked("S", -Infinity, MASKED),
  next: "A = softmax(S̄)", backward: "dS̄ = A∘(dA − D)", gradientRule: each(entry("A"), lessColumn("dA", "D")),
});
defineTensor("A", {
  label: "A", name: "weights", axes: ["query", "key"],
  forward: "A = softmax(S̄)", rule: softmaxOf("Sm"),
  next: DROPOUT, backward: "dA = dA′∘kept/(1 − p)", gradientRule: each(entry("dAd"), keptShare),
});
defineTensor("Ad", {
  label: "A′", name: "weights after dropout", axes: ["query", "key"],
  forward: DROPOUT, rule: each(entry("A"), keptShare),
  next: "O = A′ V", backward: "dA′ = dO Vᵀ", gradientRule: product("dO", "Vᵀ"),
});
defineTensor("O", {
  label: "O", name: "output of the head", axes: ["query", "feature"],
  forward: "O = A′ V", rule: product("Ad", "V"),
  next: JOINING, backward: "dO = the head's columns of dC", gradientRule: ownColumns("dC"),
});
defineTensor("C", {
  label: "C", name: "outputs of all heads", axes: ["query", "model"],
  forward: JOINING, rule: joinHeads("O"),
  next: OUTPUT, backward: "dC = G W_Oᵀ", gradientRule: product("G", "WOᵀ"),
});
defineTensor("WO", {
  label: "W_O", name: "weight of the output", axes: ["model", "model"],
  forward: "W_O", rule: given("WO", A_PARAMETER),
  next: OUTPUT, backward: "dW_O = Cᵀ G", gradientRule: product("Cᵀ", "G", {overBatch: true}),
});
defineTensor("bO", {
  label: "b_O", name: "bias of the output", axes: ["one", "model"],
  forward: "b_O", rule: given("bO", A_PARAMETER),
  next: OUTPUT, backward: "db_O = the sum of the rows of G", gradientRule: rowsOfBatch("G"),
});
defineTensor("Y", {
  label: "Y", name: "output", axes: ["query", "model"],
  forward: OUTPUT, rule: product("C", "WO", {bias: "bO"}),
  next: "what comes after the attention", backward: "dY = G", gradientRule: given("dY", ARRIVES),
});

TENSORS.G = {...TENSORS.dY, symbol: "G", label: "G", rule: given("G", ARRIVES)};
TENSORS.D = {
  symbol: "D", label: "D", name: "sum of A∘dA, by row", rowsAre: "query", colsAre: "one",
  forward: "A = softmax(S̄)", backward: "Dᵢ = Σⱼ Aᵢⱼ dAᵢⱼ", rule: rowDotOf("A", "dA"),
};

const FROM_MODULE = "Made by the module that called the attention, in a way that this page does not know.";
const AFTER_CORE = "what the module makes of it";
const FIRST_OF_CORE = Object.fromEntries(["Q", "K", "V"].map((symbol) => (
  [symbol, {forward: symbol, rule: given(symbol, FROM_MODULE)}])));
const lastOfCore = (symbol) => (
  {[symbol]: {forward: AFTER_CORE, backward: `${symbol}, from the module`, rule: given(symbol, ARRIVES)}});
const CORES = {
  joined: {...FIRST_OF_CORE, ...lastOfCore("dC")},
  apart: {...FIRST_OF_CORE, ...lastOfCore("dO")},
};

/** The facts that a core has otherwise, by symbol. */
const ofCore = ({whole, joined}) => (whole ? {} : CORES[joined ? "joined" : "apart"]);
const factsOf = (symbol, problem) => ({...TENSORS[symbol], ...ofCore(problem)[symbol]});
