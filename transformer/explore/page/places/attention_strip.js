"use strict";
// An attention in the strip and on the stage: which tiles there are, in which order, and the equation of each step.
//
// Without a mask S̄ is S. The page then shows S alone, and its gradient, where the mathematics computes S̄ as well. A mask
// that is only switched off keeps its place.

/** Without padding the decoder's self-attentions alone have one; a mask that is switched off is there, too. */
const hasMask = ({attention}) => attention?.kind === "decoder self";

const ATTENTION_COLUMNS = [
  ["X"], ["M"], ["WQ", "bQ", "WK", "bK", "WV", "bV"], ["Q", "K", "V"], ["R"], ["S"], ["Sm"], ["D"], ["A"], ["O"], ["C"], ["WO", "bO"], ["Y"]];

const ATTENTION_SHORT_NAMES = {X: "input", M: "memory", R: "scores", S: "scaled", Sm: "masked", A: "weights", O: "head",
  C: "heads", Y: "output"};

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
