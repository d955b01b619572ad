"use strict";
// An attention in the strip and on the stage: which tiles there are, in which order, and the equation of each step.
//
// Without dropout A′ is A, and without a mask S̄ is S. The page then shows A and S alone, and their gradients, where the
// mathematics computes A′ and S̄ as well. A mask that is only switched off keeps its place.

const hasDropout = ({result}) => result.heads[0].kept !== null;
/** In a live model without padding the decoder's self-attentions alone have one; a mask that is switched off is there, too. */
const hasMask = ({session, attention}) => attention !== null && (session ? attention.kind === "decoder self" : attention.mask !== null);

const ATTENTION_BACKWARD = ["dY", "dbO", "dWO", "dC", "dO", "dV", "dAd", "dA", "dSm", "dS", "dR", "dQ", "dK",
  "dbQ", "dbK", "dbV", "dWQ", "dWK", "dWV", "dX", "dM"];
const ATTENTION_FORWARD = ["X", "M", "WQ", "bQ", "WK", "bK", "WV", "bV", "Q", "K", "V", "R", "S", "Sm", "A", "Ad", "O", "C",
  "WO", "bO", "Y"];

/** The columns of the strip. What is not done here is missing. */
function attentionColumns(view) {
  const {whole, joined, selfAttention, usualScale} = view.result.problem;
  const withBias = (weight, bias) => (matrixOf(view, bias) ? [weight, bias] : [weight]);
  return [
    ...(whole ? [{operation: "input", tiles: selfAttention ? [["X"]] : [["X"], ["M"]]},
      {operation: "weights", tiles: [withBias("WQ", "bQ"), withBias("WK", "bK"), withBias("WV", "bV")]}] : []),
    {operation: whole ? "· W + b" : "given", tiles: [["Q"], ["K"], ["V"]]},
    {operation: "Q Kᵀ", tiles: [["R"]]},
    {operation: usualScale ? "÷ √d_k" : `· ${scaleText(view.attention)}`, tiles: [["S"]]},
    ...(hasMask(view) ? [{operation: "mask", tiles: [["Sm"]]}] : []),
    {operation: "softmax", tiles: [["A"]]},
    ...(hasDropout(view) ? [{operation: "dropout", tiles: [["Ad"]]}] : []),
    {operation: "· V", tiles: [["O"]]},
    ...(joined ? [{operation: "concat", tiles: [["C"]]}] : []),
    ...(whole ? [{operation: "weights", tiles: [withBias("WO", "bO")]}, {operation: "· W_O + b", tiles: [["Y"]]}] : []),
  ];
}

const ATTENTION_SHORT_NAMES = {X: "input", M: "memory", R: "scores", S: "scaled", Sm: "masked", A: "weights", Ad: "dropped",
  O: "of the head", C: "all heads", WO: "weight", bO: "bias", Y: "output"};

/** The sign of the scale, for S and dR. */
const scaleSign = ({state, result: {problem}}) => (
  !state.scaling ? "÷ 1" : problem.usualScale ? "÷ √d_k" : `· ${scaleText(problem)}`);
/** Where heads share the tensor, its gradient sums over them; of these, one is shown. */
const overHeads = (symbol, equation) => ({result}) => (
  symbol in result.problem.sharing ? `Σ_heads ${equation}` : equation);

const ATTENTION_EQUATIONS = {
  Q: "X · WQ + bQ", K: "M · WK + bK", V: "M · WV + bV", R: "Q · Kᵀ", S: (view) => `R ${scaleSign(view)}`, Sm: "mask( S )",
  A: "softmax( Sm )", Ad: "A ∘ kept/(1−p)", O: "Ad · V", C: "O*", Y: "C · WO + bO",
  dWO: "Cᵀ · G", dbO: "Σ_rows G", dC: "G · WOᵀ", dO: "columns_of dC",
  dV: overHeads("V", "Adᵀ · dO"), dAd: "dO · Vᵀ", dA: "dAd ∘ kept/(1−p)",
  D: "Σ_keys A ∘ dA", dSm: "A ∘ ( dA − D )", dS: "mask( dSm )", dR: (view) => `dS ${scaleSign(view)}`,
  dQ: overHeads("Q", "dR · K"), dK: overHeads("K", "dRᵀ · Q"),
  dWQ: "Xᵀ · dQ", dbQ: "Σ_rows dQ", dWK: "Mᵀ · dK", dbK: "Σ_rows dK", dWV: "Mᵀ · dV", dbV: "Σ_rows dV",
  dXq: "dQ · WQᵀ", dXk: "dK · WKᵀ", dXv: "dV · WVᵀ",
  dX: ({result}) => (result.problem.selfAttention ? "+dXq + +dXk + +dXv" : "+dXq"), dM: "+dXk + +dXv",
};
// As the rules of "break it" have them; what is missing here is a product that its rule describes.
const ATTENTION_BROKEN_EQUATIONS = {
  batch: {dSm: "A ∘ ( dA − D ) ÷ B"},
  rowsum: {dSm: "A ∘ dA"},
  mask: {D: "Σ_keys unmaskedA ∘ dA", dSm: "unmaskedA ∘ ( dA − D )", dS: "dSm"},
};
