"use strict";
// Matrices of doubles, the operations that attention is made of, and the arrays embedded in the page.
//
// How to use:
//   new Matrix(rows, cols)          zeros; m.at(i, j), m.set(i, j, value), m.data (row after row), m.toNested()
//   makeMatrix(rows, cols, (i, j) => value)
//   JSON.parse(text, decoded)       the page's data, with every array in them as a Matrix of doubles
//
// Every operation returns a new Matrix; none changes its operands.

class Matrix {
  constructor(rows, cols, data = new Float64Array(rows * cols)) {
    this.rows = rows;
    this.cols = cols;
    this.data = data;
  }

  at(i, j) {
    return this.data[i * this.cols + j];
  }

  set(i, j, value) {
    this.data[i * this.cols + j] = value;
  }

  /** Row i as a Float64Array that shares the matrix's memory. */
  row(i) {
    return this.data.subarray(i * this.cols, (i + 1) * this.cols);
  }

  toNested() {
    return Array.from({length: this.rows}, (_, i) => Array.from(this.row(i)));
  }
}

function makeMatrix(rows, cols, entry) {
  const out = new Matrix(rows, cols);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) out.set(i, j, entry(i, j));
  }
  return out;
}

function transpose({rows, cols, data}) {
  const out = new Matrix(cols, rows);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) out.data[j * rows + i] = data[i * cols + j];
  }
  return out;
}

/** a b: (n, m) times (m, k). */
const matmul = (a, b) => timesTransposed(a, transpose(b));

/**
 * a bᵀ: (n, m) times (k, m)ᵀ: the products of the rows of a with those of b. Four rows of b, which may be a large layer's
 * weights, are read once for all rows of a, and two of these are taken at a time; the last one of an odd number is taken twice.
 */
function timesTransposed(a, b) {
  const out = new Matrix(a.rows, b.rows);
  const [sums, left, right, inner, cols] = [out.data, a.data, b.data, a.cols, b.rows];
  const inFours = cols - (cols % 4);
  for (let j = 0; j < inFours; j += 4) {
    const end = (j + 1) * inner;
    for (let i = 0; i < a.rows; i += 2) {
      const below = Math.min(i + 1, a.rows - 1);
      let f = 0, g = 0, h = 0, m = 0, p = 0, q = 0, r = 0, s = 0;
      for (let at = j * inner, n = i * inner, o = below * inner; at < end; at++, n++, o++) {
        const x = left[n], y = left[o], b0 = right[at], b1 = right[at + inner], b2 = right[at + 2 * inner], b3 = right[at + 3 * inner];
        f += x * b0; g += x * b1; h += x * b2; m += x * b3;
        p += y * b0; q += y * b1; r += y * b2; s += y * b3;
      }
      const to = i * cols + j, under = below * cols + j;
      [sums[to], sums[to + 1], sums[to + 2], sums[to + 3]] = [f, g, h, m];
      [sums[under], sums[under + 1], sums[under + 2], sums[under + 3]] = [p, q, r, s];
    }
  }
  for (let j = inFours; j < cols; j++) {
    for (let i = 0; i < a.rows; i++) {
      for (let k = 0; k < inner; k++) sums[i * cols + j] += left[i * inner + k] * right[j * inner + k];
    }
  }
  return out;
}

function addToRow(sums, sumAt, right, rightAt, cols) {
  for (let j = 0; j < cols; j++) sums[sumAt + j] += right[rightAt + j];
}

/** Cell by cell; the matrices have one shape. */
function combine(a, b, operation) {
  const out = new Matrix(a.rows, a.cols);
  for (let n = 0; n < out.data.length; n++) out.data[n] = operation(a.data[n], b.data[n]);
  return out;
}

// The same with a loop of their own, which is several times as fast as a function that is called for every cell.

function addMatrices(a, b) {
  const [out, left, right] = [new Matrix(a.rows, a.cols), a.data, b.data];
  for (let n = 0; n < left.length; n++) out.data[n] = left[n] + right[n];
  return out;
}

function timesEach(a, b) {
  const [out, left, right] = [new Matrix(a.rows, a.cols), a.data, b.data];
  for (let n = 0; n < left.length; n++) out.data[n] = left[n] * right[n];
  return out;
}

function scaleMatrix(a, factor) {
  const [out, data] = [new Matrix(a.rows, a.cols), a.data];
  for (let n = 0; n < data.length; n++) out.data[n] = data[n] * factor;
  return out;
}

const absoluteOf = (a) => new Matrix(a.rows, a.cols, a.data.map(Math.abs));
const addAll = (matrices) => matrices.reduce(addMatrices);

/** The cells of `a` where `mask` is 1, `otherwise` where it is 0. */
function where(mask, a, otherwise) {
  const [out, allowed, data] = [new Matrix(a.rows, a.cols), mask.data, a.data];
  for (let n = 0; n < data.length; n++) out.data[n] = allowed[n] ? data[n] : otherwise;
  return out;
}

/** a with the row (1×cols) added to each of its rows, or multiplied with it. */
const plusRow = (a, row) => addMatrices(a, repeatRow(row, a.rows));
const timesRow = (a, row) => timesEach(a, repeatRow(row, a.rows));

/** a with the column (rows×1) taken from each of its columns, or multiplied with it. */
const minusColumn = (a, column) => addMatrices(a, scaleMatrix(repeatColumn(column, a.cols), -1));
const timesColumn = (a, column) => timesEach(a, repeatColumn(column, a.cols));

function repeatRow(row, rows) {
  const out = new Matrix(rows, row.cols);
  for (let i = 0; i < rows; i++) out.data.set(row.data, i * row.cols);
  return out;
}

function repeatColumn(column, cols) {
  const out = new Matrix(column.rows, cols);
  for (let i = 0; i < column.rows; i++) out.data.fill(column.data[i], i * cols, (i + 1) * cols);
  return out;
}

/** The sum of all rows: 1×cols, the gradient of what was added to every row. */
function sumOfRows(a) {
  const out = new Matrix(1, a.cols);
  for (let i = 0; i < a.rows; i++) addToRow(out.data, 0, a.data, i * a.cols, a.cols);
  return out;
}

/** The sum, and the mean, of each row: rows×1. */
const rowSums = (a) => makeMatrix(a.rows, 1, (i) => a.row(i).reduce((sum, x) => sum + x, 0));
const rowMeans = (a) => scaleMatrix(rowSums(a), 1 / a.cols);

/** The columns from `start` up to, and not including, `end`. */
function columnsOf(a, start, end) {
  const out = new Matrix(a.rows, end - start);
  for (let i = 0; i < a.rows; i++) out.row(i).set(a.row(i).subarray(start, end));
  return out;
}

/** Matrices of as many rows, next to each other. */
function sideBySide(matrices) {
  const out = new Matrix(matrices[0].rows, matrices.reduce((sum, a) => sum + a.cols, 0));
  let start = 0;
  for (const a of matrices) {
    for (let i = 0; i < a.rows; i++) out.row(i).set(a.row(i), start);
    start += a.cols;
  }
  return out;
}

/** The rows of these numbers, in their order. */
function rowsOf(a, numbers) {
  const out = new Matrix(numbers.length, a.cols);
  numbers.forEach((number, i) => out.row(i).set(a.row(number)));
  return out;
}

/** exp(aᵢⱼ) / Σⱼ exp(aᵢⱼ) in every row i; zeros in a row of −∞ alone: a query that may attend to nothing. */
function softmaxRows(a) {
  const out = new Matrix(a.rows, a.cols);
  for (let i = 0; i < a.rows; i++) {
    const top = a.row(i).reduce((most, x) => Math.max(most, x), -Infinity); // taken from every cell, so that no
    if (top === -Infinity) continue; //                                        exponential overflows
    const exponentials = a.row(i).map((x) => Math.exp(x - top));
    const total = exponentials.reduce((sum, x) => sum + x, 0);
    out.row(i).set(exponentials.map((x) => x / total));
  }
  return out;
}

/** ⟨a, b⟩, the sum of the products of their cells. */
function innerProduct(a, b) {
  let sum = 0;
  for (let n = 0; n < a.data.length; n++) sum += a.data[n] * b.data[n];
  return sum;
}

/**
 * The root of the sum of the squares of the finite cells: masked scores, which are −∞, have no part in it. Of numbers whose
 * squares overflow, as after steps that were too large, the root is taken in units of the largest.
 */
function normOf(a) {
  let sum = 0;
  for (const x of a.data) {
    if (Number.isFinite(x)) sum += x * x;
  }
  if (sum < Infinity) return Math.sqrt(sum);
  const most = a.data.reduce((largest, x) => (Number.isFinite(x) ? Math.max(largest, Math.abs(x)) : largest), 0);
  return most * normOf(new Matrix(a.rows, a.cols, a.data.map((x) => x / most)));
}

const largestOf = (a) => a.data.reduce((most, x) => Math.max(most, Math.abs(x)), 0);

// The arrays in the page's data: {shape, dtype, data}, the data in base64.

const KINDS_OF_ARRAY = {float64: Float64Array, float32: Float32Array, float16: Uint16Array};

/** The finite float16 with these bits: its sign, 5 of the exponent, 10 of the fraction (IEEE 754). */
function halfOf(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023;
  return (bits >> 15 ? -1 : 1) * (exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24);
}

/** A vector is a matrix of one row. The data are little-endian, as is every processor that runs a browser. */
function decodeArray({shape, dtype, data}) {
  const letters = atob(data), [cols, rows = 1] = shape.toReversed();
  const bytes = new Uint8Array(letters.length);
  for (let n = 0; n < bytes.length; n++) bytes[n] = letters.charCodeAt(n);
  const numbers = new Float64Array(new KINDS_OF_ARRAY[dtype](bytes.buffer));
  return new Matrix(rows, cols, dtype === "float16" ? numbers.map(halfOf) : numbers);
}

/** JSON has null for what is not finite in a check. Left as it is, arithmetic would take it for an error of 0. */
const decoded = (name, value) => (value?.dtype ? decodeArray(value) : value === null && /^(analytic|numeric|error)$/.test(name) ? NaN : value);
