"use strict";
// Every tensor of an attention and every gradient: how each of its cells is computed. Names and formulas are those of
// ATTENTION_STEPS, the table of the terminal (transformer/explore/steps.py), which Python writes in front of this script.

const AN_INPUT = "An input of the attention.";
const MASKED = "Masked: this query may not attend to this key.";
const NOTHING_BACK = "Masked: the score is not used, so nothing comes back.";
const SCALE = constant("1/√d_k", ({scale}) => scale);

/** By symbol: the rule of the tensor, and that of its gradient. */
const ATTENTION_RULES = {
  X: [given("X", AN_INPUT), pathsOfHeads(({selfAttention}) => (selfAttention ? ["dXq", "dXk", "dXv"] : ["dXq"]))],
  M: [given("M", AN_INPUT), pathsOfHeads(() => ["dXk", "dXv"])],
  WQ: [given("WQ", A_PARAMETER), product("Xᵀ", "dQ", {overBatch: true})],
  bQ: [given("bQ", A_PARAMETER), rowsOfBatch("dQ")],
  WK: [given("WK", A_PARAMETER), product("Mᵀ", "dK", {overBatch: true})],
  bK: [given("bK", A_PARAMETER), rowsOfBatch("dK")],
  WV: [given("WV", A_PARAMETER), product("Mᵀ", "dV", {overBatch: true})],
  bV: [given("bV", A_PARAMETER), rowsOfBatch("dV")],
  Q: [product("X", "WQ", {bias: "bQ"}), product("dR", "K")],
  K: [product("M", "WK", {bias: "bK"}), product("dRᵀ", "Q")],
  V: [product("M", "WV", {bias: "bV"}), product("Aᵀ", "dO")],
  R: [product("Q", "Kᵀ"), each(entry("dS"), SCALE)],
  S: [each(entry("R"), SCALE), unlessMasked("dSm", 0, NOTHING_BACK)],
  Sm: [unlessMasked("S", -Infinity, MASKED), each(entry("A"), lessColumn("dA", "D"))],
  A: [softmaxOf("Sm", "S̄"), product("dO", "Vᵀ")],
  O: [product("A", "V"), ownColumns("dC")],
  C: [joinHeads("O"), product("dY", "WOᵀ")],
  WO: [given("WO", A_PARAMETER), product("Cᵀ", "dY", {overBatch: true})],
  bO: [given("bO", A_PARAMETER), rowsOfBatch("dY")],
  Y: [product("C", "WO", {bias: "bO"}), given("dY", ARRIVES)],
};

const {tensors: STEPS, backward: ATTENTION_BACKWARD} = ATTENTION_STEPS;
const ATTENTION_FORWARD = Object.keys(ATTENTION_RULES);

/** What the page says of a tensor; of X it depends on whether the attention is self-attention. */
function factsOfStep(symbol) {
  const [rule, gradientRule] = ATTENTION_RULES[symbol];
  const facts = {...STEPS[symbol], rule, gradientRule};
  if (symbol !== "X") return facts;
  const either = (field) => ({selfAttention}) => STEPS[selfAttention ? "X of self" : "X"][field];
  return {...facts, next: either("next"), backward: either("backward")};
}

/** X or M, kept apart from the other ways in which it is read. */
const readBy = (letter, source, axis) => ({
  label: `${source} via ${letter}`, name: `input, by way of the ${STEPS[letter].name}`, axes: [axis, "model"],
  forward: source, rule: given(`X${letter.toLowerCase()}`, AN_INPUT),
  next: STEPS[letter].forward, backward: `d${source} = d${letter} W_${letter}ᵀ`,
  gradientRule: product(`d${letter}`, `W${letter}ᵀ`),
});

const ATTENTION_TENSORS = {
  ...withGradients({
    ...Object.fromEntries(ATTENTION_FORWARD.map((symbol) => [symbol, factsOfStep(symbol)])),
    Xq: readBy("Q", "X", "query"), Xk: readBy("K", "M", "key"), Xv: readBy("V", "M", "key"),
  }),
  D: {
    symbol: "D", label: "D", name: "sum of A∘dA, by row", rowsAre: "query", colsAre: "one",
    forward: "A = softmax(S̄)", backward: "Dᵢ = Σⱼ Aᵢⱼ dAᵢⱼ", rule: rowDotOf("A", "dA"),
  },
  // What a mistake made on purpose computes in place of A: see faults/breakages.js.
  unmaskedA: {
    symbol: "unmaskedA", label: "Ã", name: "weights without the mask", rowsAre: "query", colsAre: "key",
    forward: "Ã = softmax(S)", rule: softmaxOf("S"),
  },
};
