"use strict";
// Whether the gradients are right, by finite differences.
//
// How to use:
//   checks(page, attentionIndex, item, options) -> [{symbol, numeric, analytic, error, ok}], one for each tensor
//   nudge(page, attentionIndex, item, options, {symbol, head, row, col}, epsilon) -> {difference, gradient}: ΔL/ε of
//       one cell, by a central difference, and the gradient in that cell
//
// The loss of the whole model is not in the page. In its place stands the surrogate ⟨G, Y⟩: its gradient with respect
// to Y is G, so its gradients before Y are those of the loss. (In a core Y is C.) Differences are central; dropout is
// frozen.

const STEP = 1e-5; // in proportion to the tensor's norm
const TOLERANCE = 1e-5; // relative: right gradients come to 1e-7 or less, wrong ones miss by far more
const ROUNDING = 1e-14; // of the surrogate, in proportion to its terms

// In the order of the backward pass. Xq, Xk and Xv are the three ways on which a head reads X or M.
const CHECKED = ["Y", "bO", "WO", "C", "O", "V", "Ad", "A", "Sm", "S", "R", "Q", "K", "bQ", "WQ", "bK", "WK", "bV",
  "WV", "Xq", "Xk", "Xv", "X", "M"];

function checks(page, attentionIndex, item, options) {
  const result = compute(page, attentionIndex, item, options);
  const present = CHECKED.filter((symbol) => recordsWith(result, symbol).length > 0);
  return present.map((symbol) => checkTensor(result, symbol));
}

/** The records that hold the tensor and its gradient: those of all heads, or the shared one; if there are any. */
function recordsWith({heads, shared, problem}, symbol) {
  const own = heads.filter(({index}) => headsSharing(problem, symbol, index)[0] === index); // what heads share counts once
  const records = ["X", "M", "C", "WO", "bO", "Y"].includes(symbol) ? [shared] : own;
  return records.filter((record) => record[symbol] && record[`d${symbol}`]);
}

/** The tensor moved along one random direction, in all heads at once: the difference against ⟨gradient, direction⟩. */
function checkTensor(result, symbol) {
  const random = normalNumbers(symbol);
  const records = recordsWith(result, symbol);
  const directions = records.map((record) => makeMatrix(record[symbol].rows, record[symbol].cols, random));
  const size = Math.hypot(...records.map((record) => normOf(record[symbol]))) || 1;
  const step = STEP * size / Math.hypot(...directions.map(normOf));
  const analytic = records.reduce((sum, record, n) => sum + innerProduct(record[`d${symbol}`], directions[n]), 0);
  const directionOf = ({index = 0}) => (
    directions[records.findIndex((record) => (record.index ?? 0) === headsSharing(result.problem, symbol, index)[0])]);
  const {difference: numeric, noise} = differenceAlong(result, symbol, directionOf, step);
  // Some gradients are 0, as that of the key bias; beside those, what rounding may do to the difference is the measure.
  const error = Math.abs(numeric - analytic) / Math.max(Math.abs(numeric), Math.abs(analytic), noise / TOLERANCE);
  return {symbol, numeric, analytic, error, ok: error <= TOLERANCE};
}

function nudge(page, attentionIndex, item, options, {symbol, head, row, col}, epsilon) {
  const result = compute(page, attentionIndex, item, options);
  const gradient = tensorAt(result, head, `d${symbol}`);
  const moved = headsSharing(result.problem, symbol, head);
  const directionOf = ({index = head}) => makeMatrix(gradient.rows, gradient.cols,
    (i, j) => (moved.includes(index) && i === row && j === col ? 1 : 0));
  const {difference} = differenceAlong(result, symbol, directionOf, epsilon);
  return {difference, gradient: gradient.at(row, col)};
}

/**
 * (L(tensor + step·direction) − L(tensor − step·direction)) / (2·step) with L = ⟨G, Y⟩, and what of it may be rounding.
 * W and b are moved for the whole batch, every other tensor for the chosen item alone.
 */
function differenceAlong({problem, item, items, forwardTap}, symbol, directionOf, step) {
  const isParameter = /^[Wb]/.test(symbol);
  const outputs = (index, by) => forward(problem, index, (name, matrix, record) => {
    const tapped = forwardTap(name, matrix, record);
    return name === symbol ? addMatrices(tapped, scaleMatrix(directionOf(record), by)) : tapped;
  }).shared.output;
  let difference = 0;
  let terms = 0;
  for (const index of isParameter ? items.keys() : [item]) {
    const {G, output} = items[index].shared;
    const change = combine(outputs(index, step), outputs(index, -step), (above, below) => above - below);
    difference += innerProduct(G, change);
    terms += timesEach(G, output).data.reduce((sum, x) => sum + Math.abs(x), 0);
  }
  return {difference: difference / (2 * step), noise: ROUNDING * terms / step};
}

/** A function that gives normally distributed numbers, the same for the same word (mulberry32; Box and Muller 1958). */
function normalNumbers(word) {
  let state = [...word].reduce((hash, letter) => Math.imul(hash ^ letter.codePointAt(0), 16777619), 2166136261);
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}
