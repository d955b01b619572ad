"use strict";
// How large the grids of an equation are drawn: if one is too large for numbers, all become images of one cell size that
// stand in one row, and the reader can ask for the numbers.
//
// How to use:
//   measureStage()                  before a redraw changes the page: asked in between, the browser would have to lay it out
//   sizesOf(view, matrices) -> {numbers, cell, room}: options of grid() for every grid of an equation
//   numbersSwitch(view, matrices) -> [an element] that asks for the numbers, [] where they are all shown

const MOST_NUMBERS = 64 * 64; // cells of a table; a larger one would make the page slow
const SIGN_WIDTH = 44, LABELS_WIDTH = 96; // of a sign with the gaps beside it; of the labels of the rows
const STAGE_PADDING = 28; // left and right of what is in the stage
const WRAPPING = 872; // pixels: on a narrower stage the grids stand below each other
const CELL = {seen: 4, least: 7, most: LARGEST_CELL, ofTable: 37};

let stageWidth = 0; // of the inside, in pixels

function measureStage() {
  stageWidth = document.getElementById("stage").clientWidth - STAGE_PADDING;
}

const isLarge = ({rows, cols}) => rows > TABLE_ROWS || cols > TABLE_COLS;

function sizesOf({state}, matrices) {
  if (!matrices.some(isLarge)) return {};
  if (state.numbers) return {numbers: matrices.every(({data}) => data.length <= MOST_NUMBERS) || "auto"};
  const room = stageWidth - matrices.length * (SIGN_WIDTH + LABELS_WIDTH);
  const columns = matrices.reduce((sum, {cols}) => sum + cols, 0);
  const asGiven = matrices.reduce((sum, matrix) => sum + matrix.cols * (isLarge(matrix) ? CELL.most : CELL.ofTable), 0);
  const widest = Math.max(...matrices.filter(isLarge).map(({cols}) => cols)); // it gets half of the stage at most
  const cell = Math.min(CELL.most, Math.floor(room / columns), Math.floor((stageWidth / 2 - 46 - LABELS_WIDTH) / widest));
  if (widest * CELL.seen > IMAGE_WIDTH) return {room: Math.max(IMAGE_WIDTH, stageWidth - LABELS_WIDTH - 2 * SIGN_WIDTH)}; // a line for each
  if (stageWidth < WRAPPING || asGiven <= room || cell < CELL.least) return {};
  return {numbers: false, cell};
}

function numbersSwitch({state}, matrices) {
  if (!matrices.some(isLarge)) return [];
  const said = make("span", "hint", state.numbers ? "" : "Point at a cell to read its number.");
  return [make("div", "adding", checkbox("numbers", ["all numbers"], state.numbers, "Show the numbers of large grids"), said)];
}
