"use strict";
// Which tiles there are in a place, in which order the forward and the backward pass make them, and where they stand in
// the strip. What is there the kind of the place says (places/kinds.js).
//
// How to use:
//   stripColumns(view) -> [{tiles, back}], left to right: the symbols of a group, and those of the backward pass below them
//       (null: a gap)
//   forwardSymbols(view), gradientSymbols(view) -> the tiles in the order in which they are made
//   stepNumber(view, "dV") -> 6: its place in the backward pass, counted from 1
//   tileOf(view, symbol) -> the tile that stands for a tensor; partnerOf(view, symbol) -> the tile below or above it
//   labelOf(view, "dXk") -> "dX via K": M is X in self-attention
//   tokensOfTensor(view, symbol) -> {rows, cols}: which of them are tokens, for the highlights of draw/focus.js
//   paintOf(view, symbol) -> "weight", "value" or "gradient": how its cells are painted

function stripColumns(view) {
  const {columns, below, nameOf} = kindOfPlace(view);
  const isThere = (symbol) => (
    Object.hasOwn(tensorsOf(view), symbol) && nameOf(shownSymbol(view, symbol), view.result.problem) === symbol && matrixOf(view, symbol) !== null);
  const ifThere = (symbol) => (isThere(symbol) ? symbol : null);
  return columns.map((column) => column.filter(isThere)).filter(({length}) => length > 0).map((column) => ({
    tiles: column.map((symbol) => (isGradient(symbol) ? null : symbol)),
    back: column.map((symbol) => (isGradient(symbol) ? symbol : ifThere(below[symbol] ?? gradientOf(symbol))))}));
}

function forwardSymbols(view) {
  const shown = new Set(stripColumns(view).flatMap(({tiles}) => tiles));
  return kindOfPlace(view).forwardOrder.filter((symbol) => shown.has(symbol));
}

function gradientSymbols(view) {
  const shown = new Set(stripColumns(view).flatMap(({back}) => back));
  return kindOfPlace(view).backwardOrder.filter((symbol) => shown.has(symbol));
}

const stepNumber = (view, symbol) => gradientSymbols(view).indexOf(symbol) + 1;

/** The symbol under which the page shows a tensor. */
const shownSymbol = (view, symbol) => kindOfPlace(view).merged(view)[symbol] ?? symbol;

/** The tensor that goes on to the next step: S as S̄, where the page shows them as one. */
const passedOn = (view, symbol) => (
  Object.entries(kindOfPlace(view).merged(view)).find(([, shown]) => shown === symbol)?.[0] ?? symbol);

/** A tensor without a tile of its own belongs to another. */
const tileOf = (view, symbol) => shownSymbol(view, kindOfPlace(view).tiles[symbol] ?? symbol);

/** The tile below a tensor, or above a gradient; the tile itself, if there is none. */
function partnerOf(view, symbol) {
  const pairs = stripColumns(view).flatMap(({tiles, back}) => tiles.map((tile, n) => [tile, back[n]]));
  const pair = pairs.find((both) => both.includes(symbol));
  return pair?.find((other) => other !== symbol) ?? symbol;
}

const labelOf = (view, symbol) => kindOfPlace(view).spell(tensorsOf(view)[symbol].label, view.result);

/** The sentence whose tokens an axis has, or null. */
function sideOfAxis({place, attention}, axis) {
  if (axis === "query") return place.side === "decoder" ? "target" : "source";
  return axis === "key" ? attention.keys : null;
}

function tokensOfTensor(view, symbol) {
  const {rowsAre, colsAre} = tensorsOf(view)[symbol];
  return {rows: sideOfAxis(view, rowsAre), cols: sideOfAxis(view, colsAre)};
}

function paintOf(view, symbol) {
  if (isGradient(symbol)) return "gradient";
  return kindOfPlace(view).weights.includes(symbol) ? "weight" : "value";
}

/** The mask as far as it concerns a tensor: hatched are the cells from the mask on, forward and back. */
const maskFor = (view, symbol) => (kindOfPlace(view).masked.includes(symbol) && view.state.masking ? view.mask : null);
