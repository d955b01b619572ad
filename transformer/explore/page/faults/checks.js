"use strict";
// Whether the gradients are right, by finite differences.
//
// How to use:
//   checks(result) -> [{symbol, numeric, analytic, error, ok}], one for each tensor of the place
//   nudge(result, {symbol, head, row, col}, epsilon) -> {difference, gradient}: ΔL/ε of one cell, by a central
//       difference, and the gradient in that cell
//   checking(result, symbol)   a check as a generator, which rests after each forward; inOne(steps) -> what it returns
//
// L is the loss of the model. Differences are central; what each relu lets pass is frozen.

const STEP = 1e-5; // in proportion to the tensor's norm
const TOLERANCE = 1e-5; // relative: right gradients come to 1e-7 or less, wrong ones miss by far more
const ROUNDING = 1e-14; // of the loss, in proportion to its terms

/** The tensors with a gradient, in the order of the backward pass; the loss is what they are measured by. */
function checkedOf({kind}) {
  const {backwardOrder, tiles} = PLACE_KINDS[kind], inTile = (tile) => [...Object.keys(tiles).filter((symbol) => tiles[symbol] === tile), tile];
  return backwardOrder.flatMap(inTile).filter((symbol) => !MADE_BACKWARD.has(symbol) && symbol !== "dloss").map(tensorOf);
}

const checks = (result) => checkedOf(result).filter((symbol) => recordsWith(result, symbol).length > 0)
  .map((symbol) => checkTensor(result, symbol));

/** The records that hold the tensor and its gradient: those of all heads, or the shared one; if there are any. */
function recordsWith({heads, shared}, symbol) {
  const hasBoth = (record) => record[symbol] && record[`d${symbol}`];
  const own = heads.filter(hasBoth);
  return own.length > 0 ? own : [shared].filter(hasBoth);
}

const checkTensor = (result, symbol) => (result.ask ? result.ask("check", symbol) : inOne(checking(result, symbol)));

/** The tensor moved along one random direction, in all heads at once: the difference against ⟨gradient, direction⟩. */
function* checking(shown, symbol) {
  const result = shown.full ?? shown;
  const random = disorder();
  const records = recordsWith(result, symbol);
  const directions = records.map((record) => makeMatrix(record[symbol].rows, record[symbol].cols, random));
  const size = Math.hypot(...records.map((record) => normOf(record[symbol]))) || 1;
  const step = STEP * size / Math.hypot(...directions.map(normOf));
  const analytic = records.reduce((sum, record, n) => sum + innerProduct(record[`d${symbol}`], directions[n]), 0);
  const directionOf = ({index}) => directions[records.findIndex((record) => record.index === index)];
  const {difference: numeric, noise} = yield* differenceAlong(result, symbol, directionOf, step);
  // Some gradients are 0, as that of the key bias; beside those, what rounding may do to the difference is the measure.
  const error = Math.abs(numeric - analytic) / Math.max(Math.abs(numeric), Math.abs(analytic), noise / TOLERANCE);
  return {symbol, numeric, analytic, error, ok: error <= TOLERANCE};
}

function nudge(result, cell, epsilon) {
  if (result.ask) return result.ask("nudge", cell, epsilon);
  const {symbol, head, row, col} = cell;
  const record = recordOf(result, head, symbol);
  const {full = result} = result, {rows, cols} = recordOf(full, head, symbol)[symbol], {rowsAre, colsAre} = factsOf(symbol, result);
  const unit = makeMatrix(rows, cols, (i, j) => (isShownAt(result, rowsAre, i, row) && isShownAt(result, colsAre, j, col) ? 1 : 0));
  const {difference} = inOne(differenceAlong(full, symbol, ({index}) => (index === record.index ? unit : undefined), epsilon));
  return {difference, gradient: record[`d${symbol}`].at(row, col)};
}

const recordOf = ({heads, shared}, head, symbol) => (heads[head][symbol] ? heads[head] : shared);

/**
 * (L(tensor + step·direction) − L(tensor − step·direction)) / (2·step), and what of it may be rounding. Parameters are
 * moved for the whole batch, every other tensor for the chosen item alone; a record without a direction stays.
 */
function* differenceAlong({path, item, items, again}, symbol, directionOf, step) {
  const movedBy = (by) => (name, matrix, record) => {
    const direction = name === symbol && record.place.path === path ? directionOf(record) : undefined;
    return direction ? addMatrices(matrix, scaleMatrix(direction, by)) : matrix;
  };
  let difference = 0;
  let terms = 0;
  for (const index of isParameter(symbol) ? items.keys() : [item]) {
    const above = again(index, movedBy(step));
    yield;
    const below = again(index, movedBy(-step));
    yield;
    above.parts.forEach(([G, Y], n) => {
      difference += innerProduct(G, combine(Y, below.parts[n][1], (x, y) => x - y));
    });
    terms += above.size;
  }
  return {difference: difference / (2 * step), noise: ROUNDING * terms / step};
}

function inOne(steps) {
  for (;;) {
    const {done, value} = steps.next();
    if (done) return value;
  }
}

/** A function that gives numbers between −1 and 1 without an order, always the same. */
function disorder() {
  let n = 1;
  return () => (n = n * 16807 % 2147483647) / 2 ** 30 - 1;
}
