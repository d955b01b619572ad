"use strict";
// A matrix as a grid of coloured cells: a table with numbers, or, if it is large, an image with numbers on hover.
//
// How to use:
//   grid(matrix, {
//     name: "dV",                    // what it is called: in the texts of cells, and in the keys of the focus
//     kind: "gradient",              // "weight", "value" or "gradient": see colour.js
//     rowLabels, colLabels,          // arrays of strings; left out: 0, 1, 2, …
//     tokens: {rows, cols},          // which of them are tokens, and of which sentence: see showsTokens in focus.js
//     scale,                         // |value| of full colour; left out: the matrix's own
//     mask,                          // Matrix of 0/1: cells with 0 are hatched
//     highlight: [{row, col}, …],    // row alone: the whole row; col alone: the column; both: one cell; null leaves out
//     selected: {row, col},          // the chosen cell
//     onCell(row, col),              // a click, or Enter on the cell that has the keyboard focus
//     numbers: "auto",               // true: always a table; false: always an image
//     caption: element or string,    // stands above
//     cell: 12,                      // side of a cell of the image in pixels; left out: as large as fits
//     room: 1000,                    // pixels that an image of many columns may be wide
//     bare: true,                    // no colour bar below (small multiples share one)
//   }) -> a <figure class="grid">
// One cell takes part in the tab order; the arrow keys, Home and End move among the cells; Enter is a click.

const TABLE_ROWS = 16, TABLE_COLS = 16; // a larger grid is an image

function grid(matrix, options) {
  const given = {kind: "value", rowLabels: null, colLabels: null, tokens: {rows: null, cols: null}, mask: null, highlight: [], selected: null, onCell: null,
    numbers: "auto", caption: null, bare: false, cell: null, room: IMAGE_WIDTH, ...options};
  given.scale = options.scale ?? (given.kind === "weight" ? 1 : extent(matrix));
  given.rowLabels ??= Array.from({length: matrix.rows}, (_, row) => String(row));
  given.colLabels ??= Array.from({length: matrix.cols}, (_, col) => String(col));
  const asTable = given.numbers === "auto" ? matrix.rows <= TABLE_ROWS && matrix.cols <= TABLE_COLS : given.numbers;

  const figure = make("figure", asTable ? "grid" : "grid image");
  figure.dataset.name = given.name;
  if (given.caption) figure.append(make("figcaption", "grid-caption", given.caption));
  const scroller = make("div", "grid-scroll");
  scroller.append(asTable ? gridTable(matrix, given) : gridImage(matrix, given, scroller));
  const [table, canvas] = [scroller.querySelector("table"), scroller.querySelector("canvas")];
  const cellAt = (row, col) => (asTable ? table.tBodies[0].rows[row].cells[col + 1].getBoundingClientRect()
    : cellOfCanvas(canvas, count, row, col));
  const count = [matrix.rows, matrix.cols];
  showsTokens(scroller, {...given.tokens, count, cellAt});
  figure.append(scroller);
  if (!given.bare && matrix.data.length > 1) {
    const foot = make("div", "grid-foot");
    foot.append(legend(given.kind, given.scale));
    const {unit} = formatter(matrix);
    if (asTable && unit) foot.append(make("span", "grid-unit", `numbers ${unit}`));
    figure.append(foot);
  }
  return figure;
}

/** A new element with a class and contents. */
function make(tag, className = "", ...contents) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...contents);
  return element;
}

/** Whether a cell belongs to what `highlight` names. */
function isLit(highlight, row, col) {
  return highlight.some((part) => (part.row ?? row) === row && (part.col ?? col) === col);
}

const isMasked = (mask, row, col) => mask !== null && mask.at(row, col) === 0;

/** "dV[2, 5], wa, 5: 0.0213": a cell in words. */
function cellText(matrix, given, row, col) {
  const masked = isMasked(given.mask, row, col) ? ", masked" : "";
  const [rowLabel, colLabel] = [given.rowLabels[row], given.colLabels[col]];
  const names = rowLabel === String(row) && colLabel === String(col) ? "" : ` (${rowLabel}, ${colLabel})`;
  return `${given.name}[${row}, ${col}]${names}: ${formatNumber(matrix.at(row, col), 5)}${masked}`;
}

/** Where a key leads from a cell, or null if it is not one of the keys that move. */
function cellAfter(key, {row, col}, matrix) {
  const moves = {
    ArrowUp: [row - 1, col], ArrowDown: [row + 1, col], ArrowLeft: [row, col - 1], ArrowRight: [row, col + 1],
    Home: [row, 0], End: [row, matrix.cols - 1],
  };
  if (!(key in moves)) return null;
  const [toRow, toCol] = moves[key];
  return {row: Math.max(0, Math.min(matrix.rows - 1, toRow)), col: Math.max(0, Math.min(matrix.cols - 1, toCol))};
}

/** The little text that follows the pointer; without text it goes away. */
function showTip(text, x = 0, y = 0) {
  const tip = document.getElementById("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
}
