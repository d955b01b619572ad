"use strict";
// Matrices of doubles, the operations that attention is made of, and the arrays embedded in the page.
//
// How to use:
//   new Matrix(rows, cols)          zeros; m.at(i, j), m.set(i, j, value), m.data (row after row), m.toNested()
//   makeMatrix(rows, cols, (i, j) => value)
//   decodePage(JSON.parse(text))    the same object with every array in it decoded to an NdArray
//   array.matrix(item, head)        the last two axes of an NdArray (B, H, T, S) as a Matrix
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

const transpose = (a) => makeMatrix(a.cols, a.rows, (i, j) => a.at(j, i));

/** a b: (n, m) times (m, k). */
function matmul(a, b) {
  if (a.cols !== b.rows) {
    throw new RangeError(`matmul: a.cols === b.rows, got ${a.rows}×${a.cols} and ${b.rows}×${b.cols}`);
  }
  const out = new Matrix(a.rows, b.cols);
  const [sums, right, cols] = [out.data, b.data, b.cols];
  for (let i = 0; i < a.rows; i++) {
    for (let k = 0; k < a.cols; k++) {
      const factor = a.at(i, k);
      // Along row k of b and row i of the result, whose entries lie next to each other in memory.
      for (let j = 0; j < cols; j++) sums[i * cols + j] += factor * right[k * cols + j];
    }
  }
  return out;
}

/** Cell by cell; the matrices have one shape. */
const combine = (a, b, operation) => makeMatrix(a.rows, a.cols, (i, j) => operation(a.at(i, j), b.at(i, j)));
const addMatrices = (a, b) => combine(a, b, (x, y) => x + y);
const timesEach = (a, b) => combine(a, b, (x, y) => x * y);
const scaleMatrix = (a, factor) => new Matrix(a.rows, a.cols, a.data.map((x) => x * factor));
const absoluteOf = (a) => new Matrix(a.rows, a.cols, a.data.map(Math.abs));
const addAll = (matrices) => matrices.reduce(addMatrices);

/** The cells of `a` where `mask` is 1, `otherwise` where it is 0. */
const where = (mask, a, otherwise) => combine(mask, a, (allowed, x) => (allowed ? x : otherwise));

/** x W + b, with the bias added to every row; no bias: null. */
function affine(x, weight, bias) {
  const out = matmul(x, weight);
  return bias === null ? out : makeMatrix(out.rows, out.cols, (i, j) => out.at(i, j) + bias.at(0, j));
}

/** a − column, the column (rows×1) taken from every column of a. */
const minusColumn = (a, column) => makeMatrix(a.rows, a.cols, (i, j) => a.at(i, j) - column.at(i, 0));

/** The sum of all rows: 1×cols, the gradient of what was added to every row. */
function sumOfRows(a) {
  const out = new Matrix(1, a.cols);
  for (let i = 0; i < a.rows; i++) {
    for (let j = 0; j < a.cols; j++) out.data[j] += a.at(i, j);
  }
  return out;
}

/** The sum of each row: rows×1. */
const rowSums = (a) => makeMatrix(a.rows, 1, (i) => a.row(i).reduce((sum, x) => sum + x, 0));

/** The columns from `start` up to, and not including, `end`. */
const columnsOf = (a, start, end) => makeMatrix(a.rows, end - start, (i, j) => a.at(i, start + j));

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

/** ⟨a, b⟩, the sum of the products of their cells. */
function innerProduct(a, b) {
  let sum = 0;
  for (let n = 0; n < a.data.length; n++) sum += a.data[n] * b.data[n];
  return sum;
}

/** The root of the sum of the squares of the finite cells: masked scores, which are −∞, have no part in it. */
function normOf(a) {
  let sum = 0;
  for (const x of a.data) {
    if (Number.isFinite(x)) sum += x * x;
  }
  return Math.sqrt(sum);
}

const largestOf = (a) => a.data.reduce((most, x) => Math.max(most, Math.abs(x)), 0);

// The arrays in the page's data: {shape, dtype, data}, the data in base64.

class NdArray {
  constructor(shape, data) {
    this.shape = shape;
    this.data = data;
  }

  /** The matrix in the last two axes, at these indices of the axes before; a vector is a matrix of one row. */
  matrix(...leading) {
    const shape = this.shape.length === 1 ? [1, ...this.shape] : this.shape;
    const [rows, cols] = shape.slice(-2);
    const place = leading.reduce((sum, index, axis) => sum * shape[axis] + index, 0);
    return new Matrix(rows, cols, this.data.slice(place * rows * cols, (place + 1) * rows * cols));
  }
}

const READERS = {
  float64: {bytes: 8, read: (view, place) => view.getFloat64(place, true)}, // true: little-endian
  float32: {bytes: 4, read: (view, place) => view.getFloat32(place, true)},
  uint8: {bytes: 1, read: (view, place) => view.getUint8(place)},
};

/** The NdArray, in doubles, that {shape, dtype, data} stands for. */
function decodeArray({shape, dtype, data}) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const {bytes: width, read} = READERS[dtype];
  return new NdArray(shape, Float64Array.from({length: bytes.length / width}, (_, n) => read(view, n * width)));
}

/** The page's data with its arrays decoded, wherever they are, and with NaN where a check has none but that to tell. */
function decodePage(value) {
  if (Array.isArray(value)) return value.map(decodePage);
  if (value === null || typeof value !== "object") return value;
  if ("shape" in value && "dtype" in value) return decodeArray(value);
  if ("analytic" in value && "numeric" in value) return decodeCheck(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, decodePage(inner)]));
}

/** JSON has null for what is not finite. Left as it is, arithmetic would take it for an error of 0. */
const decodeCheck = (check) => Object.fromEntries(Object.entries(check).map(([name, value]) => [name, value ?? NaN]));
