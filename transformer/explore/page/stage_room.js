"use strict";
// How large the grids of an equation are drawn: if one is too large for numbers, all become images of one cell size that
// stand in one row, and the reader can ask for the numbers.
//
// How to use:
//   sizesOf(view, matrices) -> {numbers, cell}: options of grid() for every grid of an equation
//   numbersSwitch(view, matrices) -> [an element] that asks for the numbers, [] where they are all shown

const MOST_NUMBERS = 64 * 64; // cells of a table; a larger one would make the page slow
const SIGN_WIDTH = 50, LABELS_WIDTH = 52; // of a sign with the gaps beside it; of the labels of the rows
const WRAPPING = 900; // pixels: on a narrower stage the grids stand below each other
const CELL = {least: 7, most: LARGEST_CELL, ofTable: 37};

const isLarge = ({rows, cols}) => rows > TABLE_ROWS || cols > TABLE_COLS;

function sizesOf({state}, matrices) {
  if (!matrices.some(isLarge)) return {};
  if (state.numbers) return {numbers: matrices.every(({data}) => data.length <= MOST_NUMBERS) || "auto"};
  const stage = document.getElementById("stage");
  const room = stage.clientWidth - 28 - matrices.length * (SIGN_WIDTH + LABELS_WIDTH);
  const columns = matrices.reduce((sum, {cols}) => sum + cols, 0);
  const asGiven = matrices.reduce((sum, matrix) => sum + matrix.cols * (isLarge(matrix) ? CELL.most : CELL.ofTable), 0);
  const cell = Math.min(CELL.most, Math.floor(room / columns));
  if (stage.clientWidth < WRAPPING || asGiven <= room || cell < CELL.least) return {};
  return {numbers: false, cell};
}

function numbersSwitch({state}, matrices) {
  if (!matrices.some(isLarge)) return [];
  const said = make("span", "hint", state.numbers ? "" : "Point at a cell to read its number.");
  return [make("div", "adding", checkbox("numbers", ["all numbers"], state.numbers, "Show the numbers of large grids"), said)];
}
