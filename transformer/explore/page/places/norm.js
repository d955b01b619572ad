"use strict";
// The kind "norm": layer normalisation (Ba, Kiros and Hinton 2016). Every row is brought to the mean 0 and the variance 1,
// then stretched by w and moved by b, which are learnt.
//
//   forward   μ = mean(x)   1/σ = 1/√(variance(x) + ε)   x̂ = (x − μ)/σ   y = x̂∘w + b
//   backward  dx̂ = dy∘w     dx = (dx̂ − m₁ − x̂ m₂)/σ,  with the means  m₁ = mean(dx̂)  and  m₂ = mean(dx̂∘x̂)
//
// m₁ stands below μ and m₂ below 1/σ: what the forward took out of a row, the backward takes out of its gradient.

/** By the row: the mean was taken out, so the gradient says nothing about moving all cells of a row together. */
function normRowsSumToZero({shared: {dX, dXh, rs}}) {
  return {
    key: "mean",
    statement: "Every row of dX sums to 0: adding one number to a whole row changes nothing after the norm.",
    residual: largestOf(rowSums(dX)),
    scale: largestOf(rowSums(absoluteOf(dXh))) * largestOf(rs),
  };
}

/** And the length was taken out; not exactly, since ε stands beside the variance. */
function normRowsAreOrthogonal({shared: {dX, dXh, Xh, rs}}) {
  const along = rowSums(timesEach(dX, Xh));
  // Σ x̂² is d·(1 − ε/σ²): what is left along x̂ is the share ε/σ² of what came.
  const [size, came] = [rowMeans(timesEach(Xh, Xh)), rowSums(timesEach(dXh, Xh))];
  const left = makeMatrix(dX.rows, 1, (i) => rs.at(i, 0) * came.at(i, 0) * (1 - size.at(i, 0)));
  return {
    key: "length",
    statement: "Every row of dX is at a right angle to x̂, but for the little that ε leaves: stretching a row changes nothing after the norm.",
    residual: largestOf(combine(along, left, (x, y) => x - y)),
    scale: largestOf(rowSums(absoluteOf(timesEach(dXh, Xh)))) * largestOf(rs),
  };
}

defineKind("norm", {
  tensors: {
    ...withGradients({
      X: {
        name: "input of the norm",
        rule: given("X", FROM_BEFORE),
        next: "X̂ = (X − μ)/σ", backward: "dX = (dX̂ − m₁ − X̂ m₂)/σ",
        gradientRule: added([ofColumn("rs"), entry("dXh")], [MINUS, ofColumn("rs"), ofColumn("m1")],
          [MINUS, ofColumn("rs"), entry("Xh"), ofColumn("m2")]),
      },
      mu: {
        label: "μ", name: "mean of each row", axes: ["query", "one"],
        forward: "μᵢ = mean(Xᵢ)", rule: rowMeanOf("X"), backward: "in m₁",
      },
      rs: {
        label: "1/σ", name: "one over each row's deviation", axes: ["query", "one"],
        forward: "1/σᵢ = 1/√(variance(Xᵢ) + ε)", rule: inverseDeviationOf("X", "mu", ({problem}) => problem.eps),
        backward: "in m₂",
      },
      Xh: {
        label: "X̂", name: "normalised rows",
        forward: "X̂ = (X − μ)/σ", rule: each(lessColumn("X", "mu"), ofColumn("rs")),
        next: "Y = X̂∘w + b", backward: "dX̂ = dY∘w", gradientRule: each(entry("dY"), ofRow("w")),
      },
      w: {
        name: "weight of each feature", axes: ["one", "model"],
        rule: given("w", A_PARAMETER),
        next: "Y = X̂∘w + b", backward: "dw = the sum of the rows of dY∘X̂", gradientRule: rowsOfBatch("dY", "Xh"),
      },
      b: {
        name: "bias of each feature", axes: ["one", "model"],
        rule: given("b", A_PARAMETER),
        next: "Y = X̂∘w + b", backward: "db = the sum of the rows of dY", gradientRule: rowsOfBatch("dY"),
      },
      Y: {
        label: "Y", name: "output of the norm", axes: ["query", "model"],
        forward: "Y = X̂∘w + b", rule: added([entry("Xh"), ofRow("w")], [ofRow("b")]),
        next: AFTERWARDS, backward: "dY", gradientRule: given("dY", ARRIVES),
      },
    }),
    m1: {
      symbol: "m1", label: "m₁", name: "mean of dX̂, by row", rowsAre: "query", colsAre: "one",
      forward: "μᵢ = mean(Xᵢ)", backward: "m₁ᵢ = mean(dX̂ᵢ)", rule: rowMeanOf("dXh"),
    },
    m2: {
      symbol: "m2", label: "m₂", name: "mean of dX̂∘X̂, by row", rowsAre: "query", colsAre: "one",
      forward: "1/σᵢ = 1/√(variance(Xᵢ) + ε)", backward: "m₂ᵢ = mean(dX̂ᵢ∘X̂ᵢ)", rule: rowMeanOf("dXh", "Xh"),
    },
  },
  forwardOrder: ["X", "mu", "rs", "Xh", "w", "b", "Y"],
  backwardOrder: ["dY", "db", "dw", "dXh", "m1", "m2", "dX"],
  columns: [["X"], ["mu", "rs"], ["Xh"], ["w", "b"], ["Y"]],
  below: {mu: "m1", rs: "m2"},
  equations: {
    mu: "mean_of_rows X", rs: "1/√( variance_of_rows X + ε )", Xh: "( X − mu ) ∘ rs", Y: "Xh ∘ w + b",
    dXh: "dY ∘ w", m1: "mean_of_rows dXh", m2: "mean_of_rows dXh ∘ Xh",
    dX: "rs ∘ ( dXh − m1 − Xh ∘ m2 )",
  },
  words: {
    X: "One row for each token, as the layers before left it.",
    mu: "The mean of the features of each token.",
    rs: "How far the features of a token lie from their mean, upside down: what is multiplied with makes the spread 1. "
      + "ε keeps it finite where all are equal.",
    Xh: "Each token's features, moved to the mean 0 and stretched to the deviation 1: whether a row was large or small is forgotten.",
    w: "The model may give a feature more weight again.",
    b: "The model may move a feature again.",
    Y: "What the next layer reads: of the same size for every token, however far the stream has grown.",
    dY: "What the loss makes of the normalised rows: it arrives from the layer that read them.",
    db: ADDED_TO_ALL("every row of Y"),
    dw: "It multiplied its column of X̂, so it collects, from every token, what went in times what came back.",
    dXh: "What was multiplied by w on the way forward is multiplied by w on the way back.",
    m1: "The share of the gradient that would move all features of a token together. The norm takes their mean out again, so it can do nothing.",
    m2: "The share of the gradient along x̂, that would stretch a token's features. The norm makes the deviation 1 again, so it can do nothing.",
    dX: "What is left of dX̂ when the two shares that the norm undoes are taken out, divided by σ: the larger a row was, the "
      + "less a change in it matters.",
  },
  shortNames: {X: "input", mu: "mean", rs: "1/deviation", Xh: "normalised", w: "weight", b: "bias", Y: "output"},
  identities: [normRowsSumToZero, normRowsAreOrthogonal],
  spell: withoutMissingBias,
});
