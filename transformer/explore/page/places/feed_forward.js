"use strict";
// The kind "feed_forward": two layers with an activation between them, for each token alone.
//
//   forward   H = X W₁ + b₁        F = act(H)             Y = F W₂ + b₂
//   backward  dF = dY W₂ᵀ          dH = dF∘act′(H)        dX = dH W₁ᵀ
//             dW₂ = Fᵀ dY          dW₁ = Xᵀ dH            db₂, db₁: the sums of the rows of dY, of dH

/** act(H): one term, the activation of one cell. */
const activationOfH = {
  cell(reader, i, j) {
    const {activation} = reader.problem;
    const of = [reader.factor("H", i, j)];
    const note = activation === "relu" && of[0].value <= 0 ? "Negative: relu lets nothing through." : null;
    return {
      terms: [termOf({kind: "function", name: activation, of, value: ACTIVATIONS[activation].value(of[0].value)})], note,
      highlights: [reader.highlight("H", i, j)],
    };
  },
};

/** dF∘act′(H): the slope is a factor. */
const slopeTimesWhatCame = {
  cell(reader, i, j) {
    const {activation} = reader.problem;
    const of = [reader.factor("H", i, j)];
    const slope = {kind: "function", name: `${activation}′`, of, value: ACTIVATIONS[activation].slope(of[0].value)};
    return {
      terms: [termOf(reader.factor("dF", i, j), slope)],
      note: activation !== "relu" ? null : slope.value === 0 ? "relu is flat here: nothing comes back, exactly 0."
        : "relu has the slope 1 here: what came passes on as it is.",
      highlights: ["dF", "H"].map((symbol) => reader.highlight(symbol, i, j)),
    };
  },
};

function zeroWhereReluWasOff({problem, shared: {H, dH}}) {
  if (problem.activation !== "relu" || H.data.every((x) => x > 0)) return null;
  return {
    key: "off",
    statement: "dH is exactly 0 where relu was off: those cells learn nothing from this sentence.",
    residual: largestOf(combine(H, dH, (h, x) => (h > 0 ? 0 : x))),
    scale: 0,
  };
}

const named = (formula) => (problem) => formula.replace(/act/g, problem.activation);

defineKind("feed_forward", {
  tensors: withGradients({
    X: {
      name: "input",
      rule: given("X", FROM_BEFORE),
      next: "H = X W₁ + b₁", backward: "dX = dH W₁ᵀ", gradientRule: product("dH", "W1ᵀ"),
    },
    ...linearParameters("first layer", "W1", "b1", "X", "H", ["model", "hidden"]),
    H: {
      name: "hidden features", axes: ["query", "hidden"],
      forward: "H = X W₁ + b₁", rule: product("X", "W1", {bias: "b1"}),
      next: named("F = act(H)"), backward: named("dH = dF∘act′(H)"), gradientRule: slopeTimesWhatCame,
    },
    F: {
      name: "hidden features after the activation", axes: ["query", "hidden"],
      forward: named("F = act(H)"), rule: activationOfH,
      next: "Y = F W₂ + b₂", backward: "dF = dY W₂ᵀ", gradientRule: product("dY", "W2ᵀ"),
    },
    ...linearParameters("second layer", "W2", "b2", "F", "Y", ["hidden", "model"]),
    Y: {
      name: "output",
      forward: "Y = F W₂ + b₂", rule: product("F", "W2", {bias: "b2"}),
      next: AFTERWARDS, backward: "dY", gradientRule: given("dY", ARRIVES),
    },
  }),
  forwardOrder: ["X", "W1", "b1", "H", "F", "W2", "b2", "Y"],
  backwardOrder: ["dY", "db2", "dW2", "dF", "dH", "db1", "dW1", "dX"],
  columns: [["X"], ["W1", "b1"], ["H"], ["F"], ["W2", "b2"], ["Y"]],
  equations: {
    F: ({result}) => `${result.problem.activation}( H )`, dH: ({result}) => `dF ∘ ${result.problem.activation}′( H )`,
  },
  words: {
    X: "One row for each token; here no token looks at another.",
    W1: "Each column asks one question of a token: its dot product with the row is the answer.",
    H: "How well each token answers each of the questions.",
    F: ({result}) => (result.problem.activation === "relu"
      ? "Answers below 0 are cut off: only questions that a token says yes to go on."
      : "Answers far below 0 are cut off, large ones go on as they are, and between the two it bends."),
    W2: "Each row is what one question, answered yes, adds to the stream.",
    Y: "What the answers add to each token, together.",
    dY: "What the loss makes of the output: it arrives from the addition to the stream.",
    db2: ADDED_TO_ALL("every row of Y"),
    dW2: `An entry takes one hidden feature into one feature of Y, ${FOR_EVERY_TOKEN}`,
    dF: "A hidden feature went into its whole row of Y with the weights of a row of W₂; the gradient of that row comes back "
      + "with the same weights.",
    dH: ({result}) => (result.problem.activation === "relu"
      ? "Where relu was on, its slope is 1 and the gradient passes; where it was off, a little more or less of H changes nothing."
      : "The slope of the activation says how much of a small change of H goes on to F, so that share of the gradient comes back."),
    db1: ADDED_TO_ALL("every row of H"),
    dW1: `An entry takes one feature of X into one hidden feature, ${FOR_EVERY_TOKEN}`,
    dX: "A feature of X went into every hidden feature with the weights of a row of W₁, and their gradients come back with the same weights.",
  },
  shortNames: {X: "input", W1: "weight", b1: "bias", H: "hidden", F: "activated", W2: "weight", b2: "bias", Y: "output"},
  identities: [zeroWhereReluWasOff],
  spell: withoutMissingBias,
});
