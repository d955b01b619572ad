"use strict";
// The kind "attention": softmax(Q Kᵀ/√d_k) V in several heads (Vaswani et al. 2017, section 3.2), of which the files
// attention_*.js say the tensors, the strip, the words and what must hold.

/** Without a mask S̄ is S. */
const mergedInAttention = (view) => (hasMask(view) ? {} : {Sm: "S", dSm: "dS"});

const asShownInAttention = (view, text) => (hasMask(view) ? text : text.replaceAll("S̄", "S"));

/** X for M in self-attention, and no bias that is not there. */
function spellAttention(text, result) {
  const named = result.problem.selfAttention ? text.replace(/M/g, "X") : text;
  return named.replace(/ \+ b_([QKVO])/g, (bias, letter) => (tensorAt(result, 0, `b${letter}`) ? bias : ""));
}

defineKind("attention", {
  tensors: ATTENTION_TENSORS,
  forwardOrder: ATTENTION_FORWARD,
  backwardOrder: ATTENTION_BACKWARD,
  columns: ATTENTION_COLUMNS,
  equations: ATTENTION_EQUATIONS,
  words: ATTENTION_WORDS,
  shortNames: ATTENTION_SHORT_NAMES,
  weights: ["A", "unmaskedA"],
  masked: ["Sm", "A", "dA", "dSm", "dS", "dR"],
  tiles: {dXq: "dX", dXk: "dX", dXv: "dX"},
  instead: {M: "X", dM: "dX", Sm: "S", dSm: "dS"},
  editable: {Q: "Q", K: "K", V: "V", dY: "dY"},
  identities: ATTENTION_IDENTITIES,
  merged: mergedInAttention,
  replaced: ({broken, problem}) => (broken ? broken.replaces(problem) : {}),
  brokenEquations: ATTENTION_BROKEN_EQUATIONS,
  nameOf: (symbol, {selfAttention}) => (symbol === "M" && selfAttention ? "X" : symbol),
  spell: spellAttention,
  asShown: asShownInAttention,
});
