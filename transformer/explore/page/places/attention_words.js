"use strict";
// Each step of an attention in words: what a tensor is for, and why its gradient is what the formula says.

const ONE_ROW_EACH = "One row for each token, as the layers before left it.";
/** The words of a step that the switch of the mask can take away. */
const unlessMaskIsOff = (words, without) => (view) => (view.mask || !hasMask(view) ? words : without);
/** The words of a step that the switch ÷ √d_k can take away. */
const unlessScalingIsOff = (words, without) => ({state}) => (state.scaling ? words : without);
/** In self-attention keys and values are made of X. */
const fromSource = (letter) => ({result}) => (
  `An entry takes one feature of ${result.problem.selfAttention ? "X" : "M"} into one feature of ${letter}, ${FOR_EVERY_TOKEN}`);

const ATTENTION_WORDS = {
  X: ONE_ROW_EACH,
  M: ONE_ROW_EACH,
  Q: "What each token asks for: its dot products with the keys decide where it looks.",
  K: "What each token is found by.",
  V: "What each token hands over to those that look at it.",
  R: "Row i, column j: how well query i and key j agree, their dot product.",
  S: unlessScalingIsOff(
    "Dot products grow with the width of a head; divided by its root they stay where softmax still has a slope.",
    "√d_k is switched off."),
  Sm: unlessMaskIsOff("exp(−∞) is 0: a masked key gets no weight.", "Nothing is masked here."),
  A: "No weight is negative and each row sums to 1: how much query i takes from key j.",
  O: "Each query's mean of the values, under its weights.",
  C: "Each head fills columns of its own.",
  Y: "The output mixes what the heads have found.",
  dY: "What the loss makes of the output: it arrives from the layers after this one, and every other gradient here is made of it.",
  dbO: ADDED_TO_ALL("every row of Y"),
  dWO: `An entry takes one feature of C into one feature of Y, ${FOR_EVERY_TOKEN}`,
  dC: "An entry of C went into its whole row of Y with the weights of a row of W_O; the gradient of that row comes back with the same weights.",
  dO: "Each head filled columns of its own in C, and gets those of dC.",
  dV: "Value j went into output i with the weight Aᵢⱼ, so it gets that share of row i of dO, and the shares of all queries add up.",
  dA: "The weight says how much of value j goes into output i, so its gradient is dOᵢ · Vⱼ: whether more of that value would raise the loss.",
  D: "The mean of dA in a row, each key counted by its weight.",
  dSm: "The weights of a row sum to 1, so a score that rises takes from all the others: what counts is how far dA lies from D, "
    + "its mean in the row. Where a weight is nearly 0, or nearly 1, hardly any gradient gets through.",
  dS: unlessMaskIsOff("A masked score was not used, so its gradient is exactly 0; the others pass on what came.",
    "Nothing is masked here: the gradient passes on as it is."),
  dR: unlessScalingIsOff("What was divided on the way forward is divided on the way back.",
    "√d_k is switched off: the gradient passes on as it is."),
  dQ: "Query i met every key in its row of R, so it gets the keys back, each with the weight dRᵢⱼ.",
  dK: "Key j met every query in its column of R, so it gets the queries back, each with the weight dRᵢⱼ.",
  dbQ: ADDED_TO_ALL("every query"),
  dbK: "It was added to every key, which adds one number to all the scores of a row, and softmax does not see that: the "
    + "gradient is 0, but for rounding.",
  dbV: ADDED_TO_ALL("every value"),
  dWQ: `An entry takes one feature of X into one feature of Q, ${FOR_EVERY_TOKEN}`,
  dWK: fromSource("K"),
  dWV: fromSource("V"),
  dX: ({result}) => (result.problem.selfAttention
    ? "X was read three times, for queries, keys and values, in every head: what comes back on all these ways is added."
    : "Here X was read for the queries alone, in every head: what comes back from each is added."),
  dM: "Keys and values were made of it, in every head: what comes back on these ways is added.",
};
