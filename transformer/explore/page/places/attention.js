"use strict";
// The kind "attention": softmax(Q Kᵀ/√d_k) V in several heads (Vaswani et al. 2017, section 3.2), of which the files
// attention_*.js say the tensors, the strip, the words and what must hold.

/** Without dropout A′ is A, without a mask S̄ is S. */
const mergedInAttention = (view) => ({
  ...(hasDropout(view) ? {} : {Ad: "A", dAd: "dA", unmaskedAd: "unmaskedA"}),
  ...(hasMask(view) ? {} : {Sm: "S", dSm: "dS"}),
});

function asShownInAttention(view, text) {
  const withoutPrimes = hasDropout(view) ? text : text.replaceAll("A′", "A").replaceAll("Ã′", "Ã");
  return hasMask(view) ? withoutPrimes : withoutPrimes.replaceAll("S̄", "S");
}

/** X for M in self-attention, the scale as it is, and no bias that is not there. */
function spellAttention(text, result) {
  const {selfAttention, usualScale} = result.problem;
  const named = selfAttention ? text.replace(/M/g, "X") : text;
  const scaled = usualScale ? named : named.replace("/√d_k", ` · ${scaleText(result.problem)}`);
  return scaled.replace(/ \+ b_([QKVO])/g, (bias, letter) => (tensorAt(result, 0, `b${letter}`) ? bias : ""));
}

/** The factor of the scores that is none of 1/√d_k. */
const scaleText = ({scale}) => String(Number(scale.toPrecision(4)));

defineKind("attention", {
  tensors: ATTENTION_TENSORS,
  forwardOrder: ATTENTION_FORWARD,
  backwardOrder: ATTENTION_BACKWARD,
  columns: attentionColumns,
  equations: ATTENTION_EQUATIONS,
  words: ATTENTION_WORDS,
  opening: "dV",
  shortNames: ATTENTION_SHORT_NAMES,
  weights: ["A", "Ad", "unmaskedA", "unmaskedAd"],
  masked: ["Sm", "A", "Ad", "dAd", "dA", "dSm", "dS", "dR"],
  tiles: {G: "dY", D: "dSm", dXq: "dX", dXk: "dX", dXv: "dX"},
  instead: {M: "X", dM: "dX", Ad: "A", dAd: "dA", Sm: "S", dSm: "dS", G: "dY", C: "O", dC: "dO", Y: "O", dY: "dO"},
  editable: {Q: "Q", K: "K", V: "V", dY: "G"},
  identities: ATTENTION_IDENTITIES,
  otherwise: ofCore,
  merged: mergedInAttention,
  replaced: ({broken, problem}) => (broken ? broken.replaces(problem) : {}),
  brokenEquations: ATTENTION_BROKEN_EQUATIONS,
  nameOf: (symbol, {selfAttention}) => (symbol === "M" && selfAttention ? "X" : symbol),
  spell: spellAttention,
  asShown: asShownInAttention,
});
