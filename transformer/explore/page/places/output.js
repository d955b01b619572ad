"use strict";
// The kind "output": the logits, their softmax, and the loss, which is where the backward pass begins.
//
//   forward   Z = X W + b     P = softmax(Z)     Lᵢ = −ln P of row i's target     loss = Σᵢ Lᵢ/N
//   backward  dZ = (P − onehot)/N     dW = Xᵀ dZ     db = the sum of the rows of dZ     dX = dZ Wᵀ
//
// The sum over this sentence is shown; N is the number of the target's tokens in all sentences, and onehot has 1 at each row's target, 0 elsewhere.

/** Whether a number that is written out has the digits that are shown of the one it stands for. */
const hasDigits = (written, value) => Math.abs(written - value) <= 1e-9 * Math.abs(value);

/** The column of row i's target. */
const columnOfTarget = ({shared: {shown, ids}}, i) => (shown ?? ids)[i];

/** −ln P at the target; by the logits where P is too near 0 or 1 to have the digits of its logarithm. */
const surpriseAtTarget = {
  cell(reader, i) {
    const target = columnOfTarget(reader, i);
    const probability = reader.factor("P", i, target);
    const value = -Math.log(probability.value);
    if (!hasDigits(value, reader.matrix("L").at(i, 0))) return surpriseByLogits(reader, i, target);
    return {terms: [termOf({kind: "negative logarithm", of: [probability], value})], highlights: [reader.highlight("P", i, target)]};
  },
};

/** −ln P = (Z at its largest − Z at the target) + ln(1 + the exponentials of the others, beside the largest). */
function surpriseByLogits(reader, i, target) {
  const row = reader.matrix("Z").row(i);
  const top = row.indexOf(Math.max(...row));
  const largest = reader.factor("Z", i, top);
  const difference = (col) => {
    const of = [largest, reader.factor("Z", i, col)];
    return {kind: "difference", of, value: of[0].value - of[1].value};
  };
  const exponential = (col) => {
    const of = [reader.factor("Z", i, col), largest];
    return {kind: "exponential", of, value: Math.exp(of[0].value - of[1].value)};
  };
  const terms = Array.from(row.keys()).filter((col) => col !== top).map((col) => termOf(exponential(col)));
  const others = sumOf(terms);
  const logarithm = {kind: "logarithm of 1 +", of: [{label: "the sum of the others", value: others}], value: Math.log1p(others)};
  return {
    terms: [termOf(difference(target)), termOf(logarithm)],
    note: "P is rounded too near to 0 or 1 for its logarithm, so this is made of the logits.",
    aside: {formula: "Σⱼ exp(Zᵢⱼ − maxⱼ Zᵢⱼ) but for the largest", terms, sum: others},
    highlights: [reader.highlight("Z", i, null)],
  };
}

/** Σᵢ Lᵢ/N, over the rows of this sentence. */
const shareOfMean = {
  cell: (reader) => ({
    terms: Array.from({length: reader.matrix("L").rows}, (_, i) => termOf(reader.factor("L", i, 0), shareOfOne(reader))),
    highlights: [reader.highlight("L", null, 0)],
  }),
};

const shareOfOne = ({problem: {count}}) => ({label: `1/N, N = ${count}`, value: 1 / count});

/** (P − onehot)/N. */
const shareLessOneAtTarget = {
  cell(reader, i, j) {
    const isTarget = columnOfTarget(reader, i) === j;
    const onehot = isTarget ? {label: "1, at the target", value: 1} : {label: "0, not the target", value: 0};
    const probability = reader.factor("P", i, j);
    const difference = {kind: "difference", of: [probability, onehot], value: probability.value - onehot.value};
    const share = shareOfOne(reader);
    if (!hasDigits(difference.value * share.value, reader.matrix("dZ").at(i, j))) return lessAllOthers(reader, i, j, share);
    return {
      terms: [termOf(difference, share)],
      note: isTarget ? "The target's own logit: negative, so a step against the gradient raises it."
        : "Not the target: positive, so a step against the gradient lowers it.",
      highlights: [reader.highlight("P", i, j)],
    };
  },
};

/** P − 1 at a target of which the model is sure: all that the others have, taken away. */
function lessAllOthers(reader, i, target, share) {
  const others = Array.from(reader.matrix("P").row(i).keys()).filter((j) => j !== target);
  return {
    terms: others.map((j) => termOf(MINUS({problem: reader.problem}), reader.factor("P", i, j), share)),
    note: "P is rounded too near to 1 for the difference, so P − 1 is written as minus the P of all others.",
    highlights: [reader.highlight("P", i, null)],
  };
}

/** X W + b, but for the column of all others. */
const logit = product("X", "W", {bias: "b"});
const logitOrOthers = {...logit, cell: (reader, i, j) => (j < reader.matrix("W").cols ? logit.cell(reader, i, j)
  : given("Z", "ln Σ exp of the logits of all other tokens: one token with it would have their probability.").cell(reader, i, j))};

/** dZ Wᵀ: the other tokens' part is one term, since each has weights of its own. */
const throughLogits = {
  equation: "dZ · Wᵀ",
  cell(reader, i, j) {
    const {cols} = reader.matrix("W");
    const terms = Array.from({length: cols}, (_, k) => termOf(reader.factor("dZ", i, k), reader.factor("W", j, k)));
    if (cols < reader.matrix("dZ").cols) terms.push(termOf({label: "all others", value: reader.matrix("dX").at(i, j) - sumOf(terms)}));
    return {terms, highlights: [reader.highlight("dZ", i, null), reader.highlight("W", j, null)]};
  },
};

/** Adding one number to all logits of a row changes no probability. */
function logitsSumToZero({shared: {P, dZ}, problem}) {
  return {
    key: "logits",
    statement: "Every row of dZ sums to 0: what the target gains, the others lose.",
    residual: largestOf(rowSums(dZ)),
    scale: 2 * largestOf(rowSums(P)) / problem.count,
  };
}

/** The target's logit is the only one that a step raises. */
function onlyTargetIsNegative({shared}) {
  const {dZ} = shared, wrongSide = (i, j) => Math.max(0, columnOfTarget({shared}, i) === j ? dZ.at(i, j) : -dZ.at(i, j));
  return {
    key: "sign",
    statement: "In each row of dZ the target alone is not positive, and no other is negative.",
    residual: largestOf(makeMatrix(dZ.rows, dZ.cols, wrongSide)),
    scale: 0,
  };
}

defineKind("output", {
  tensors: withGradients({
    X: {
      name: "output of the decoder",
      rule: given("X", FROM_BEFORE),
      next: "Z = X W + b", backward: "dX = dZ Wᵀ", gradientRule: throughLogits,
    },
    ...linearParameters("vocabulary", "W", "b", "X", "Z", ["model", "vocabulary"]),
    Z: {
      name: "logits", axes: ["query", "vocabulary"],
      forward: "Z = X W + b", rule: logitOrOthers,
      next: "P = softmax(Z),  Lᵢ = −ln P of the target,  loss = Σ Lᵢ/N", backward: "dZ = (P − onehot)/N",
      gradientRule: shareLessOneAtTarget,
    },
    P: {
      name: "probabilities", axes: ["query", "vocabulary"],
      forward: "P = softmax(Z)", rule: softmaxOf("Z"), backward: "together with the logarithm, in dZ",
    },
    L: {
      name: "loss of each token", axes: ["query", "one"],
      forward: "Lᵢ = −ln P of row i's target", rule: surpriseAtTarget, backward: "each counts 1/N",
    },
    loss: {
      name: "loss of the sentence", axes: ["one", "one"],
      forward: "loss = Σᵢ Lᵢ/N", rule: shareOfMean,
      next: "loss = Σᵢ Lᵢ/N", backward: "dloss = ∂loss/∂loss = 1", gradientRule: given("dloss", "The loss changes as fast as itself."),
    },
  }),
  forwardOrder: ["X", "W", "b", "Z", "P", "L", "loss"],
  backwardOrder: ["dloss", "dZ", "db", "dW", "dX"],
  columns: [["X"], ["W", "b"], ["Z"], ["P"], ["L"], ["loss"]],
  equations: {
    P: "softmax( Z )", L: "−ln( P ) at_the_targets", loss: "Σ_rows L ÷ N", dZ: "( P − onehot ) ÷ N",
  },
  words: {
    X: "The decoder's last word on each token, from which the next one is chosen.",
    W: "One column for each token of the vocabulary: its dot product with a row says how well that token would come next.",
    Z: "How well each token of the vocabulary would come next; no number has a meaning alone, only beside the others of its row.",
    P: "No probability is negative and each row sums to 1: what the model believes comes next.",
    L: "0 if the model was sure of the target; the less it believed in it, the larger. All together, divided by N, they are the loss.",
    loss: "One number for the whole sentence: the smaller, the better the model foresaw the target.",
    dloss: "Here the backward pass begins: with 1.",
    dZ: "A logit that rises takes probability from all the others, so it gets what the model "
      + "gave it, and the target what it was not given: P − 1. Where the model is sure and right, nothing is left to learn.",
    db: ADDED_TO_ALL("every row of Z"),
    dW: "An entry takes one feature of X into one token's logit, for every token: what went in times what came back, summed over the tokens and the sentences.",
    dX: "The columns of W of the tokens that should fall, less that of the target: each as far as dZ says.",
  },
  shortNames: {X: "input", W: "weight", b: "bias", Z: "logits", P: "softmax", L: "by token", loss: "one number"},
  weights: ["P"],
  identities: [logitsSumToZero, onlyTargetIsNegative],
  spell: withoutMissingBias,
});
