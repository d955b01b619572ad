"use strict";
// The layers of a Transformer beside attention, each on a tape and each a place with its record.
//
// How to use:
//   const Y = runNorm(tape, place, {X, w, b}, eps);       place = placeOf(path, kind, item, problem), X and w nodes;
//                                                          place.shared has the rest: shared.Xh, and after the backward
//                                                          shared.dXh, … Each returns the node of its output.
//   sinusoid(length, width, layout, first) -> Matrix      the fixed positions
//
// A bias that is not there is null.

/** Y = x̂∘w + b,  x̂ = (X − μ)/σ in each row */
function runNorm(tape, {shared}, {X: input, w, b}, eps) {
  const X = tape.name(input, shared, "X"); // (T, D)
  const Xh = tape.name(tape.normalize(X, eps, shared), shared, "Xh");
  const scaled = tape.timesRow(Xh, tape.name(w, shared, "w"));
  const bias = tape.name(b, shared, "b");
  return tape.name(bias === null ? scaled : tape.addRow(scaled, bias), shared, "Y");
}

/** H = X W₁ + b₁,  F = f(H),  Y = F W₂ + b₂; with `slopes`, a Matrix, F = H∘slopes instead: see BatchRun.again */
function runFeedForward(tape, {shared}, {X: input, W1, b1, W2, b2}, activation, slopes) {
  const named = (node, symbol) => tape.name(node, shared, symbol);
  const H = named(tape.affine(named(input, "X"), named(W1, "W1"), named(b1, "b1")), "H"); // (T, d_ff)
  const F = named(slopes ? tape.timesEach(H, slopes) : tape.activate(H, activation), "F");
  return named(tape.affine(F, named(W2, "W2"), named(b2, "b2")), "Y"); // (T, D)
}

/** Y = X + U: the stream, and what the sublayer made of it */
function runResidual(tape, {shared}, {X, U}) {
  return tape.name(tape.add(tape.name(X, shared, "X"), tape.name(U, shared, "U")), shared, "Y");
}

/**
 * Y = √D·E + P,  E = the rows of the tokens in the table W, P those of their positions: a node if
 * they are learned, a Matrix if they are fixed.
 */
function runEmbedding(tape, {shared, problem}, {W, ids, positions, start}) {
  shared.ids = ids;
  const E = tape.name(tape.rows(tape.name(W, shared, "W"), ids), shared, "E"); // (T, D)
  const scaled = tape.scale(E, problem.embeddingScale);
  const P = positions instanceof Matrix ? tape.leaf(tape.file(shared, "P", positions))
    : tape.name(tape.rows(positions, ids.map((_, position) => start + position)), shared, "P");
  return tape.name(tape.add(scaled, P), shared, "Y");
}

/** Z = X W + b,  P = softmax(Z),  Lᵢ = −log Pᵢ,targetᵢ,  loss = ΣL/N */
function runOutput(tape, {shared}, {X: input, W, b, targets}, count) {
  const named = (node, symbol) => tape.name(node, shared, symbol);
  shared.ids = targets;
  const Z = named(tape.affine(named(input, "X"), named(W, "W"), named(b, "b")), "Z"); // (T, V)
  return named(tape.crossEntropy(Z, targets, count, shared), "loss");
}

/**
 * The positions of Vaswani et al. 2017, section 3.5: row p has sin(p·ω) and cos(p·ω) for each ω, "interleaved" with
 * ω = 10000^(−2i/D); or in "halves", all sines before all cosines, with ω = 10000^(−i/(D/2 − 1)). `first` is the number
 * of the first row. The model holds them in float32, so these are rounded so.
 */
function sinusoid(length, width, layout, first) {
  const pairs = width / 2;
  const frequency = (n) => (layout === "interleaved"
    ? 10000 ** (-n / pairs) : Math.exp(n * (-Math.log(10000) / Math.max(1, pairs - 1))));
  const isSine = (j) => (layout === "interleaved" ? j % 2 === 0 : j < pairs);
  const pairOf = (j) => (layout === "interleaved" ? Math.floor(j / 2) : j % pairs);
  return makeMatrix(length, width, (i, j) => {
    const angle = (first + i) * frequency(pairOf(j));
    return Math.fround(isSine(j) ? Math.sin(angle) : Math.cos(angle));
  });
}
