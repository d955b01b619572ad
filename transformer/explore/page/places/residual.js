"use strict";
// The kind "residual": the sublayer's output is added to the stream that goes around it (He et al. 2015).
//
//   forward   Y = X + U
//   backward  dX = dY  around the sublayer,  dU = dY  into it

function gradientGoesAroundUnchanged({shared: {dX, dU, dY}}) {
  return {
    key: "around",
    statement: "dX, on the way around the sublayer, and dU, on the way into it, are dY itself.",
    residual: Math.max(...[dX, dU].map((path) => largestOf(combine(path, dY, (x, y) => x - y)))),
    scale: 0,
  };
}

defineKind("residual", {
  tensors: withGradients({
    X: {
      name: "stream",
      rule: given("X", FROM_BEFORE),
      next: "Y = X + U", backward: "dX = dY", gradientRule: each(entry("dY")),
    },
    U: {
      name: "output of the sublayer",
      rule: given("U", "What the sublayer made of the stream."),
      next: "Y = X + U", backward: "dU = dY", gradientRule: each(entry("dY")),
    },
    Y: {
      name: "stream, with the sublayer's output added",
      forward: "Y = X + U", rule: added([entry("X")], [entry("U")]),
      next: AFTERWARDS, backward: "dY", gradientRule: given("dY", ARRIVES),
    },
  }),
  forwardOrder: ["X", "U", "Y"],
  backwardOrder: ["dY", "dU", "dX"],
  columns: [["X", "U"], ["Y"]],
  equations: {Y: "X + U", dX: "dY", dU: "dY"},
  words: {
    X: "The stream: every sublayer reads it, and adds to it; none replaces it.",
    U: "What the sublayer has to say about each token.",
    Y: "The stream goes on, with what the sublayer had to say.",
    dY: "What the loss makes of the stream after the addition.",
    dU: "It was added as it is, so it gets the gradient as it is: the sublayer's backward begins with it.",
    dX: "It was added as it is, so it gets the gradient as it is, however deep the model: on this way nothing shrinks. What "
      + "comes back through the sublayer, which read the stream too, is added to it before.",
  },
  shortNames: {X: "stream", U: "sublayer", Y: "sum"},
  identities: [gradientGoesAroundUnchanged],
});
