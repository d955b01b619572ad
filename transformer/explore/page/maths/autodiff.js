"use strict";
// Gradients by themselves: a tape notes every operation of the forward, and goes through them again from the last to the
// first, with the rule of each.
//
// How to use:
//   const tape = new Tape();
//   const [x, w] = [tape.leaf(X), tape.leaf(W)];       nodes: {value: Matrix, …}
//   const y = tape.matmul(x, w);                       every operation takes nodes and returns a node
//   tape.backward(y, G);                               G = the gradient of the loss by y's value
//   gradientBy(w)                                      that of the loss by w; what nothing came back to has zeros
//
// What has a name is kept in a record, the value under its symbol and the gradient under d and the symbol:
//   const q = tape.name(node, record, "Q");            record.Q now, and record.dQ in the backward; null stays null
//   tape.file(record, "D", matrix)                     the same for a matrix that is no node; returns it
// Both go through the tape's tap: tap(symbol, matrix, record) returns the matrix to go on with; the record holds all that
// was computed before. That is how an entry is edited (taps.js), how a finite difference moves a tensor (faults/checks.js)
// and how a wrong rule gets into the backward (faults/breakages.js).
//
// A tape whose backward is never called has run the forward alone, at no further cost.
// Nodes and records may have one matrix in common, as dX and dY of a sum: no matrix is changed once it is made.

/** What `make` makes of a matrix, once: every run reads that of the weights. */
const onceOf = (make, made = new WeakMap()) => (matrix, ...more) => made.get(matrix) ?? (made.set(matrix, make(matrix, ...more)), made.get(matrix));
const transposed = onceOf(transpose);
const piecesOf = onceOf((a, count) => Array.from({length: count}, (_, n) => columnsOf(a, n * a.cols / count, (n + 1) * a.cols / count)));
const untouched = (symbol, matrix) => matrix;

/** The sum of what came back. */
function gradientBy(node) {
  const {value: {rows, cols}, parts} = node;
  node.gradient ??= parts.length ? addAll(parts.map(made)) : new Matrix(rows, cols);
  return node.gradient;
}

const made = (part) => (typeof part === "function" ? made(part()) : part);

class Tape {
  constructor(tap = untouched) {
    this.tap = tap;
    this.nodes = [];
  }

  /** A node that no operation made: a parameter or an input. */
  leaf(value, ofWeights = false) {
    return this.step(value, [], () => [], ofWeights);
  }

  /**
   * The node of an operation. `rule` takes the gradient by its value and returns those by its inputs, in their order, each
   * a matrix or a function that makes it. `ofWeights`: the node is a parameter, or all of one in another form.
   */
  step(value, inputs, rule, ofWeights = inputs.length > 0 && inputs.every((input) => input.ofWeights)) {
    const node = {value, gradient: null, parts: [], inputs, rule, ofWeights};
    this.nodes.push(node);
    return node;
  }

  file(record, symbol, matrix) {
    record[symbol] = this.tap(symbol, matrix, record);
    return record[symbol];
  }

  /** forward: Y = X                            so here: dX = dY; both are kept in the record */
  name(a, record, symbol) {
    if (a === null) return record[symbol] = null; // as a bias that is not there
    const d = `d${symbol}`, node = this.step(this.file(record, symbol, a.value), [a],
      (dY) => [node.ofWeights ? dY : this.file(record, d, dY)]);
    if (node.ofWeights) Object.defineProperty(record, d, {enumerable: true, get: () => this.tap(d, gradientBy(node), record)});
    return node;
  }

  /**
   * From the last operation to the first; a node that is used several times gets the sum of what comes back. The gradients
   * of weights, to which nothing else leads, are most of the work, and are made when they are first looked at.
   */
  backward(node, gradient) {
    node.parts.push(gradient);
    for (let n = this.nodes.length - 1; n >= 0; n--) {
      const step = this.nodes[n], {inputs, rule, ofWeights} = step;
      if (inputs.length === 0) continue;
      const gradients = ofWeights ? () => rule(gradientBy(step)) : rule(gradientBy(step));
      inputs.forEach((input, index) => input.parts.push(ofWeights ? () => gradients()[index] : gradients[index]));
    }
  }

  // ------------------------------------------------------------------ products and sums

  /** forward: Y = A B                          so here: dA = dY Bᵀ,  dB = Aᵀ dY */
  matmul(a, b) {
    return this.step(timesTransposed(a.value, transposed(b.value)), [a, b],
      (dY) => [timesTransposed(dY, b.value), () => matmul(transpose(a.value), dY)]);
  }

  /** forward: Y = Aᵀ                           so here: dA = dYᵀ */
  transpose(a) {
    return this.step(transposed(a.value), [a], (dY) => [transpose(dY)]);
  }

  /** forward: Y = A + B                        so here: dA = dY,  dB = dY */
  add(a, b) {
    return this.step(addMatrices(a.value, b.value), [a, b], (dY) => [dY, dY]);
  }

  /** forward: Y = A + row, in every row        so here: dA = dY,  drow = the sum of dY's rows */
  addRow(a, row) {
    return this.step(plusRow(a.value, row.value), [a, row], (dY) => [dY, sumOfRows(dY)]);
  }

  /** forward: Y = A∘row, in every row          so here: dA = dY∘row,  drow = the sum of the rows of dY∘A */
  timesRow(a, row) {
    return this.step(timesRow(a.value, row.value), [a, row],
      (dY) => [timesRow(dY, row.value), sumOfRows(timesEach(dY, a.value))]);
  }

  /** forward: Y = c A                          so here: dA = c dY */
  scale(a, factor) {
    return this.step(scaleMatrix(a.value, factor), [a], (dY) => [scaleMatrix(dY, factor)]);
  }

  /** forward: Y = A∘a constant matrix          so here: dA = dY∘the constant */
  timesEach(a, constant) {
    return this.step(timesEach(a.value, constant), [a], (dY) => [timesEach(dY, constant)]);
  }

  /** X W + b; without b if it is null. */
  affine(x, weight, bias) {
    const product = this.matmul(x, weight);
    return bias === null ? product : this.addRow(product, bias);
  }

  // ------------------------------------------------------------------ parts

  /** forward: Y₁, Y₂, … = A cut between columns so here: dA = dY₁, dY₂, … side by side */
  split(a, count) {
    this.step(a.value, [a], () => [sideBySide(pieces.map(gradientBy))]); // before the pieces, so after them in the backward
    const pieces = piecesOf(a.value, count).map((piece) => this.leaf(piece, a.ofWeights));
    return pieces;
  }

  /** forward: Y = matrices side by side        so here: each gets its columns of dY */
  sideBySide(nodes) {
    return this.step(sideBySide(nodes.map(({value}) => value)), nodes, (dY) => {
      let start = 0;
      return nodes.map(({value}) => columnsOf(dY, start, start += value.cols));
    });
  }

  /** The rows of both, of a forward alone. */
  below(a, b) {
    const out = new Matrix(a.value.rows + b.value.rows, b.value.cols);
    out.data.set(a.value.data);
    out.data.set(b.value.data, a.value.data.length);
    return this.leaf(out);
  }

  /** forward: Yᵢ = the row of A with number nᵢ so here: dA has in each row the sum of the dYᵢ that came from it */
  rows(a, numbers) {
    return this.step(rowsOf(a.value, numbers), [a], (dY) => [() => {
      const dA = new Matrix(a.value.rows, a.value.cols);
      numbers.forEach((number, i) => addToRow(dA.data, number * dA.cols, dY.data, i * dA.cols, dA.cols));
      return dA;
    }], false);
  }

  // ------------------------------------------------------------------ attention's

  /** forward: Y = A where mask is 1, else −∞   so here: dA = dY where mask is 1, else 0 */
  where(mask, a) {
    return this.step(where(mask, a.value, -Infinity), [a], (dY) => [where(mask, dY, 0)]);
  }

  /** forward: Y = softmax(A), row by row       so here: dA = Y∘(dY − D)  with  Dᵢ = Σⱼ Yᵢⱼ dYᵢⱼ, which the record keeps */
  softmaxRows(a, record) {
    const Y = softmaxRows(a.value);
    return this.step(Y, [a], (dY) => {
      const D = this.file(record, "D", rowSums(timesEach(Y, dY)));
      return [timesEach(Y, minusColumn(dY, D))];
    });
  }

  // ------------------------------------------------------------------ those of the other layers

  /** forward: Y = f(A), cell by cell           so here: dA = dY∘f′(A), for f of ACTIVATIONS */
  activate(a, name) {
    const {value, slope} = ACTIVATIONS[name];
    return this.step(new Matrix(a.value.rows, a.value.cols, a.value.data.map(value)), [a],
      (dY) => [combine(dY, a.value, (dy, x) => dy * slope(x))]);
  }

  /**
   * forward: x̂ = (x − μ)/σ, row by row         so here: dx = (dx̂ − m₁ − x̂ m₂)/σ  with  m₁ = mean(dx̂), m₂ = mean(dx̂∘x̂)
   * with μ = mean(x), σ² = mean((x − μ)²) + ε. The record keeps μ as mu, 1/σ as rs, and m1 and m2.
   */
  normalize(a, eps, record) {
    const mu = this.file(record, "mu", rowMeans(a.value));
    const centred = minusColumn(a.value, mu);
    const variance = rowMeans(timesEach(centred, centred));
    const rs = this.file(record, "rs", new Matrix(mu.rows, 1, variance.data.map((v) => 1 / Math.sqrt(v + eps))));
    const Xh = timesColumn(centred, rs);
    return this.step(Xh, [a], (dXh) => {
      const m1 = this.file(record, "m1", rowMeans(dXh));
      const m2 = this.file(record, "m2", rowMeans(timesEach(dXh, Xh)));
      const inside = combine(minusColumn(dXh, m1), timesColumn(Xh, m2), (x, y) => x - y);
      return [timesColumn(inside, rs)];
    });
  }

  /**
   * forward: P = softmax(Z), Lᵢ = −log Pᵢ,targetᵢ, loss = ΣᵢLᵢ/N    so here: dZ = (P − onehot(target))/N · dloss
   * N is `count`. The record keeps P and L. At the target P − 1 is minus the sum of the others: where the model is sure,
   * P is rounded to 1, and the difference would have no digits.
   */
  crossEntropy(z, targets, count, record) {
    const P = this.file(record, "P", softmaxRows(z.value));
    const L = this.file(record, "L", negativeLogarithms(z.value, targets));
    const loss = new Matrix(1, 1, Float64Array.of(L.data.reduce((sum, x) => sum + x, 0) / count));
    return this.step(loss, [z], (dLoss) => {
      const others = makeMatrix(P.rows, 1, (i) => P.row(i).reduce((sum, p, j) => (j === targets[i] ? sum : sum + p), 0));
      return [makeMatrix(P.rows, P.cols,
        (i, j) => (targets[i] === j ? -others.at(i, 0) : P.at(i, j)) * dLoss.data[0] / count)];
    });
  }
}

/**
 * −log softmax(Z) at the target of each row: rows×1. With top = the largest of the row it is top − z_target + log(1 + Σ
 * of exp(z − top) over the others), where log1p keeps the digits of a sum that is small beside the 1: a sure model's.
 */
function negativeLogarithms(Z, targets) {
  return makeMatrix(Z.rows, 1, (i) => {
    const row = Z.row(i);
    const top = row.indexOf(row.reduce((most, z) => Math.max(most, z), -Infinity));
    const others = row.reduce((sum, z, j) => (j === top ? sum : sum + Math.exp(z - row[top])), 0);
    return row[top] - row[targets[i]] + Math.log1p(others);
  });
}
