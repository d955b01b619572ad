"use strict";
// Each step in words: what a tensor is for, and why its gradient is what the formula says.
//
// How to use:
//   inWords(view, "dV") -> a sentence or two; "" for what needs none

const FOR_EVERY_TOKEN = "for every token: what went in times what came back, summed over the tokens and the sentences.";
const ONE_ROW_EACH = "One row for each token, as the layers before left it.";
const ADDED_TO_ALL = (what) => `It was added to ${what}, so it collects the gradient of each.`;

const WORDS = {
  X: ONE_ROW_EACH,
  M: ONE_ROW_EACH,
  Q: "What each token asks for: its dot products with the keys decide where it looks.",
  K: "What each token is found by.",
  V: "What each token hands over to those that look at it.",
  R: "Row i, column j: how well query i and key j agree, their dot product.",
  S: "Dot products grow with the width of a head; divided by its root they stay where softmax still has a slope.",
  Sm: "exp(−∞) is 0: a masked key gets no weight.",
  A: "No weight is negative and each row sums to 1: how much query i takes from key j.",
  Ad: "Some weights are dropped at random while the model trains, the others made larger to make up for it.",
  O: "Each query's mean of the values, under its weights.",
  C: "Each head fills columns of its own.",
  Y: "The output mixes what the heads have found.",
  dY: "What the loss makes of the output: it arrives from the layers after this one, and every other gradient here is made of it.",
  dbO: ADDED_TO_ALL("every row of Y"),
  dWO: `An entry takes one feature of C into one feature of Y, ${FOR_EVERY_TOKEN}`,
  dC: "An entry of C went into its whole row of Y with the weights of a row of W_O; the gradient of that row comes back with the same weights.",
  dO: "Each head filled columns of its own in C, and gets those of dC.",
  dV: "Value j went into output i with the weight A′ᵢⱼ, so it gets that share of row i of dO, and the shares of all queries add up.",
  dAd: "The weight says how much of value j goes into output i, so its gradient is dOᵢ · Vⱼ: whether more of that value would raise the loss.",
  dA: "What dropout kept was multiplied by 1/(1 − p), and so is its gradient; what it dropped gets none.",
  D: "The mean of dA in a row, each key counted by its weight.",
  dSm: "The weights of a row sum to 1, so a score that rises takes from all the others: what counts is how far dA lies from D, "
    + "its mean in the row. Where a weight is nearly 0, or nearly 1, hardly any gradient gets through.",
  dS: "A masked score was not used, so its gradient is exactly 0; the others pass on what came.",
  dR: "What was divided on the way forward is divided on the way back.",
  dQ: "Query i met every key in its row of R, so it gets the keys back, each with the weight dRᵢⱼ.",
  dK: "Key j met every query in its column of R, so it gets the queries back, each with the weight dRᵢⱼ.",
  dbQ: ADDED_TO_ALL("every query"),
  dbK: "It was added to every key, which adds one number to all the scores of a row, and softmax does not see that: the "
    + "gradient is 0, but for rounding.",
  dbV: ADDED_TO_ALL("every value"),
  dM: "Keys and values were made of it, in every head: what comes back on these ways is added.",
};
for (const [letter, source] of [["Q", "X"], ["K", "M"], ["V", "M"]]) {
  WORDS[`dW${letter}`] = `An entry takes one feature of ${source} into one feature of ${letter}, ${FOR_EVERY_TOKEN}`;
}
const WITHOUT = { // where the step does nothing
  mask: {Sm: "Nothing is masked here.", dS: "Nothing is masked here: the gradient passes on as it is."},
  scaling: {S: "√d_k is switched off.", dR: "√d_k is switched off: the gradient passes on as it is."},
};
const OF_INPUT = {
  self: "X was read three times, for queries, keys and values, in every head: what comes back on all these ways is added.",
  cross: "Here X was read for the queries alone, in every head: what comes back from each is added.",
};

function inWords(view, symbol) {
  if (brokenRule(view, symbol)) return ""; // it is wrong, and the explanation of the mistake says why
  const {problem} = view.result;
  if (symbol in ofCore(problem) || (["S", "dR"].includes(symbol) && !problem.usualScale)) return "";
  if (symbol === "dX") return view.attention.m === null ? OF_INPUT.self : OF_INPUT.cross;
  const without = {...(view.mask || !hasMask(view) ? {} : WITHOUT.mask), ...(view.state.scaling ? {} : WITHOUT.scaling)};
  const words = without[symbol] ?? WORDS[ruleSymbol(view, symbol)] ?? "";
  // In self-attention M is X.
  return asShown(view, view.attention.m === null ? words.replace(/\bM\b/g, "X") : words);
}
