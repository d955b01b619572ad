"use strict";
// An attention in the strip and on the stage: which tiles there are, in which order, and the equation of each step.
//
// Without a mask S̄ is S. The page then shows S alone, and its gradient, where the mathematics computes S̄ as well. A mask
// that is only switched off keeps its place.

/** Without padding the decoder's self-attentions alone have one; a mask that is switched off is there, too. */
const hasMask = ({attention}) => attention?.kind === "decoder self";

/** The columns of the strip. What is not done here is missing. */
function attentionColumns(view) {
  const {selfAttention} = view.result.problem;
  const withBias = (weight, bias) => (matrixOf(view, bias) ? [weight, bias] : [weight]);
  return [
    {operation: "input", tiles: selfAttention ? [["X"]] : [["X"], ["M"]]},
    {operation: "weights", tiles: [withBias("WQ", "bQ"), withBias("WK", "bK"), withBias("WV", "bV")]},
    {operation: "· W + b", tiles: [["Q"], ["K"], ["V"]]},
    {operation: "Q Kᵀ", tiles: [["R"]]},
    {operation: "÷ √d_k", tiles: [["S"]]},
    ...(hasMask(view) ? [{operation: "mask", tiles: [["Sm"]]}] : []),
    {operation: "softmax", tiles: [["A"]]},
    {operation: "· V", tiles: [["O"]]},
    {operation: "concat", tiles: [["C"]]},
    {operation: "weights", tiles: [withBias("WO", "bO")]},
    {operation: "· W_O + b", tiles: [["Y"]]},
  ];
}

const ATTENTION_SHORT_NAMES = {X: "input", M: "memory", R: "scores", S: "scaled", Sm: "masked", A: "weights",
  O: "of the head", C: "all heads", WO: "weight", bO: "bias", Y: "output"};

/** The sign of the scale, for S and dR. */
const scaleSign = ({state}) => (state.scaling ? "÷ √d_k" : "÷ 1");

const ATTENTION_EQUATIONS = {
  S: (view) => `R ${scaleSign(view)}`, Sm: "mask( S )", A: "softmax( Sm )", C: "O*",
  dO: "columns_of dC", D: "Σ_keys A ∘ dA", dSm: "A ∘ ( dA − D )", dS: "mask( dSm )", dR: (view) => `dS ${scaleSign(view)}`,
  dX: ({result}) => (result.problem.selfAttention ? "+dXq + +dXk + +dXv" : "+dXq"), dM: "+dXk + +dXv",
};
// As the rules of "break it" have them.
const ATTENTION_BROKEN_EQUATIONS = {
  batch: {dSm: "A ∘ ( dA − D ) ÷ B"},
  rowsum: {dSm: "A ∘ dA"},
  mask: {D: "Σ_keys unmaskedA ∘ dA", dSm: "unmaskedA ∘ ( dA − D )", dS: "dSm"},
};
