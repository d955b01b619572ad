"use strict";
// What holds for the gradients of every attention: see faults/identities.js.

/** Adding one number to all scores of a row changes no weight. */
function rowsSumToZero({heads}, head) {
  return {
    key: "rows",
    statement: "Every row of dS sums to 0.",
    residual: largestOf(rowSums(heads[head].dS)),
    scale: largestOf(sizesOfRows(heads[head])),
  };
}

/** Σⱼ A dA = Σⱼ Aᵢⱼ (dOᵢ · Vⱼ) = dOᵢ · Oᵢ. */
function dotWithOutput({heads}, head) {
  const {D, O, dO} = heads[head];
  const products = timesEach(dO, O);
  return {
    key: "dot",
    statement: "Dᵢ = Σⱼ Aᵢⱼ dAᵢⱼ equals dOᵢ · Oᵢ.",
    residual: largestOf(combine(D, rowSums(products), (x, y) => x - y)),
    scale: largestOf(sizesOfRows(heads[head])) + largestOf(rowSums(absoluteOf(products))),
  };
}

/** A = 0 there, and dS = A∘(dA − D): exactly 0, not nearly. */
function zeroWhereMasked({heads}, head) {
  const {mask, dS} = heads[head];
  if (mask === null || !mask.data.includes(0)) return null;
  return {
    key: "masked",
    statement: "dS is exactly 0 in masked cells, though dA is not.",
    residual: largestOf(combine(mask, dS, (allowed, x) => (allowed ? 0 : x))),
    scale: 0,
  };
}

/** A key bias adds Qᵢ·b to all scores of row i, which changes no weight. */
function zeroForKeyBias({items, problem}, head) {
  const records = items.map(({heads}) => heads[head]);
  const terms = records.map((record) => matmul(transpose(sizesOfRows(record)), absoluteOf(record.Q)));
  return {
    key: "bias",
    statement: "The gradient of the key bias is 0: the rows of dK, over the batch, sum to 0.",
    residual: largestOf(addAll(records.map(({dK}) => sumOfRows(dK)))),
    scale: largestOf(addAll(terms)) * problem.scale,
  };
}

/** Its weight is 1, whatever the score. */
function zeroForOneKey({heads, problem}, head) {
  const {mask, K, dQ} = heads[head];
  const seen = rowSums(mask ?? makeMatrix(dQ.rows, K.rows, () => 1));
  if (!seen.data.includes(1)) return null;
  return {
    key: "one key",
    statement: "A query that sees one key has dQ = 0.",
    residual: largestOf(makeMatrix(dQ.rows, dQ.cols, (i, j) => (seen.at(i, 0) === 1 ? dQ.at(i, j) : 0))),
    scale: largestOf(sizesOfRows(heads[head])) * largestOf(K) * problem.scale,
  };
}

/** The size, row by row, of the terms that cancel in dS = A∘(dA − D). */
const sizesOfRows = ({A, dA, D}) => (
  rowSums(combine(A, minusColumn(absoluteOf(dA), scaleMatrix(absoluteOf(D), -1)), (a, terms) => a * terms)));

const ATTENTION_IDENTITIES = [rowsSumToZero, dotWithOutput, zeroWhereMasked, zeroForKeyBias, zeroForOneKey];
