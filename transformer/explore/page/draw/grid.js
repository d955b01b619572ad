"use strict";
// A matrix as a grid of coloured cells on a canvas, with a number in each where there is room, and names at its sides.
//
// How to use:
//   grid(matrix, {
//     name: "dV",                    // what it is called: in the texts of cells, and in the key of the focus
//     kind: "gradient",              // "weight", "value" or "gradient": see colour.js
//     size: {width, height},         // of a cell in pixels, and whether its number stands in it: sizeOfCells(…)
//     rowLabels, colLabels,          // arrays of strings; left out: 0, 1, 2, …
//     tokens: {rows, cols},          // which of them are tokens: "source" or "target", or null
//     scale,                         // |value| of full colour; left out: the matrix's own
//     mask,                          // Matrix of 0/1: cells with 0 are hatched
//     told,                          // a text: what it has in quotation marks keeps its label
//     highlight: [{row, col}, …],    // row alone: the whole row; col alone: the column; both: one cell
//     selected: {row, col},          // the chosen cell
//     onCell(row, col),              // a click, or Enter on the cell under the keyboard's cursor
//     caption: element or string,    // stands above
//   }) -> a <figure class="grid"> with the `matrix`, and the `size` of its cells
//   frameOf(part, matrix, size, className) -> a frame around a row, a column or a cell, to stand in the grid's .cells
//   widthOfNumbers(matrix) -> the pixels that its widest number takes in a cell
//   widthOfLabels(labels)  -> those of the widest name beside a row
//   heightOfLabels(labels, width) -> those of the names above columns of that width
// The grid takes part in the tab order; the arrow keys, Home and End move a cursor among the cells; Enter is a click.

const WITH_GAPS = 3; // pixels of a cell: in smaller ones no gap is drawn
const LONGEST_LABEL = 6.2; // letters' heights that a name may be long before it is cut

function grid(matrix, options) {
  const given = {kind: "value", tokens: {rows: null, cols: null}, mask: null, told: "", highlight: [], selected: null, onCell: null,
    caption: null, ...options};
  given.scale ??= given.kind === "weight" ? 1 : extent(matrix);
  given.rowLabels ??= indices(matrix.rows);
  given.colLabels ??= indices(matrix.cols);
  const canvas = make("canvas"), cells = make("div", "cells"), said = make("span", "visually-hidden");
  said.setAttribute("aria-live", "polite");
  const keys = `the arrow keys move among the cells${given.onCell ? ", Enter chooses one" : ""}`;
  const box = build("div", {class: given.onCell ? "grid-box can-choose" : "grid-box", tabindex: "0", role: "group", "data-key": `grid:${given.name}`,
    "aria-label": `${given.name}, ${matrix.rows} by ${matrix.cols}; ${keys}`},
    make("span"), labelsBeside("top", given, given.size.width), labelsBeside("left", given, given.size.height), cells, said);
  const draw = (cursor = given.selected) => cells.replaceChildren(drawGrid(canvas, matrix, given), ...marksOf(matrix, given, cursor));
  draw();
  listenToGrid(box, canvas, said, matrix, given, draw);
  const figure = build("figure", {class: "grid", "data-name": given.name}, given.caption && make("figcaption", "grid-caption", given.caption), box);
  if (matrix.data.length > 1) figure.append(make("div", "grid-foot", legend(given.kind, given.scale)));
  return Object.assign(figure, {matrix, size: given.size});
}

const indices = (count) => Array.from({length: count}, (_, n) => String(n));

/** A new element with a class and contents. */
function make(tag, className = "", ...contents) {
  return build(tag, className ? {class: className} : {}, ...contents);
}

// ------------------------------------------------------------------ sizes

const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
const letters = document.createElement("canvas").getContext("2d");

function widthOf(text, font = `${rem()}px ${FONT}`) {
  letters.font = font;
  return letters.measureText(text).width;
}

const FONT = "system-ui, sans-serif";
const widest = (texts) => Math.max(...texts.map((text) => widthOf(text)));

function widthOfNumbers(matrix) {
  const text = formatter(matrix);
  return Math.ceil(widest(Array.from(new Set(Array.from(matrix.data, text)))) + 0.6 * rem());
}

const widthOfLabels = (labels) => Math.ceil(Math.min(LONGEST_LABEL * rem(), widest(labels)) + 0.5 * rem());

/** A name that is wider than its column is turned, but for numbers, of which some are left out. */
const isTurned = (text, n, width) => text !== String(n) && [...text].length > 2 && widthOf(text) > width;
function heightOfLabels(labels, width) {
  const turned = labels.filter((text, n) => isTurned(text, n, width));
  return Math.ceil(turned.length ? Math.min(LONGEST_LABEL * rem(), widest(turned)) + 6 : 1.4 * rem());
}

/** The names at a side: that of the chosen cell, or of what made it, those that are told of, and as many others as there is room for. */
function labelsBeside(side, given, size) {
  const [labels, sentence, at] = side === "top" ? [given.colLabels, given.tokens.cols, "col"] : [given.rowLabels, given.tokens.rows, "row"];
  const chosen = [given.selected, ...given.highlight].map((part) => part?.[at]).find(Number.isInteger);
  const turned = (text, n) => side === "top" && isTurned(text, n, size);
  const needed = labels.map((text, n) => (side === "left" || turned(text, n) ? rem() : widthOf(text) + 3));
  const every = Math.ceil(Math.max(...needed) / size), all = [...labels.keys()];
  const shown = new Set(all.filter((n) => n === chosen || given.told.includes(`“${labels[n]}”`)));
  for (const n of [...all.filter((n) => n % every === 0), ...all.filter((n) => labels[n] !== String(n))]) {
    if (all.every((other) => !shown.has(other) || Math.abs(n - other) * size >= (needed[n] + needed[other]) / 2)) shown.add(n);
  }
  return build("div", {class: `labels ${side}`, "aria-hidden": "true"}, ...labels.map((text, n) => {
    const label = build("span", {class: [n === chosen && "chosen", turned(text, n) && "turned"].filter(Boolean).join(" "), title: text, style: `${side === "top" ? "width" : "height"}: ${size}px`},
      make("span", "", shown.has(n) ? text : ""));
    return sentence ? standsFor(label, {side: sentence, place: n}) : label;
  }));
}

// ------------------------------------------------------------------ drawing

function drawGrid(canvas, matrix, given) {
  const {width, height, numbers} = given.size;
  const gap = Math.min(width, height) > WITH_GAPS ? 1 : 0;
  const context = drawMatrix(canvas, matrix, {...given, width: matrix.cols * width, height: matrix.rows * height, gap});
  if (numbers) drawNumbers(context, matrix, given);
  return canvas;
}

/** What lies over the cells: frames around what made the chosen cell, and around it; and its number where cells have no room for theirs. */
function marksOf(matrix, {highlight, size}, cursor) {
  const chosen = cursor ? [cursor] : [], isCell = ({row, col}) => (row ?? null) !== null && (col ?? null) !== null;
  const tags = size.numbers || matrix.data.length === 1 ? [] : [...highlight.filter(isCell), ...chosen].flatMap((cell) => tagOf(cell, matrix, size));
  return [...highlight.map((part) => frameOf(part, matrix, size, "source")), ...chosen.map((cell) => frameOf(cell, matrix, size, "cursor")), ...tags];
}

/** Stripes would run through the number of a masked cell: it stands on a ground of its own. */
function drawNumbers(context, matrix, {kind, scale, mask, size: {width, height}}) {
  const text = formatter(matrix);
  Object.assign(context, {font: `${rem()}px ${FONT}`, textAlign: "center", textBaseline: "middle"});
  for (let row = 0; row < matrix.rows; row++) {
    for (let col = 0; col < matrix.cols; col++) {
      const colour = paintRgb(kind, matrix.at(row, col), scale), shown = text(matrix.at(row, col));
      const [x, y] = [(col + 0.5) * width, (row + 0.5) * height];
      if (isMasked(mask, row, col)) {
        const wide = context.measureText(shown).width + 4;
        context.fillStyle = cssColour(colour);
        context.fillRect(x - wide / 2, y - 0.6 * rem(), wide, 1.2 * rem());
      }
      context.fillStyle = inkOn(colour);
      context.fillText(shown, x, y + 1);
    }
  }
}

/** The number of a cell stands below it, or above: its row stays in sight. */
function tagOf({row, col}, matrix, {width, height}) {
  const text = formatNumber(matrix.at(row, col), 3), [wide, high] = [widthOf(text) + 8, 1.25 * rem()];
  if (matrix.cols * width < wide || matrix.rows * height < 2 * high) return []; // there is no room for it
  const x = Math.max(0, Math.min(matrix.cols * width - wide, (col + 0.5) * width - wide / 2));
  const below = (row + 1) * height + 3;
  return [build("span", {class: "tag", style: `left: ${x}px; top: ${below + high <= matrix.rows * height ? below : row * height - 3 - high}px`}, text)];
}

/** Outside of its cells, which keep their colours. */
function frameOf(part, matrix, size, className) {
  const [x, y, width, height] = rectangleOf(part, matrix, size.width, size.height);
  return build("span", {class: className, style: `left: ${x}px; top: ${y}px; width: ${width - 1}px; height: ${height - 1}px`});
}

/** [x, y, width, height] of a row, a column or a cell. */
function rectangleOf(part, matrix, width, height) {
  const [row, rows] = (part.row ?? null) === null ? [0, matrix.rows] : [part.row, 1];
  const [col, cols] = (part.col ?? null) === null ? [0, matrix.cols] : [part.col, 1];
  return [col * width, row * height, cols * width, rows * height];
}

const isMasked = (mask, row, col) => mask !== null && mask.at(row, col) === 0;

// ------------------------------------------------------------------ pointer and keyboard

function listenToGrid(box, canvas, said, matrix, given, draw) {
  let cursor = given.selected ?? {row: 0, col: 0};
  const {width, height} = given.size;
  const placeOf = (event) => {
    const {left, top} = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - top) / height), col = Math.floor((event.clientX - left) / width);
    return row >= 0 && col >= 0 && row < matrix.rows && col < matrix.cols ? {row, col} : null;
  };
  const light = ({row, col}) => highlight([`${given.tokens.rows}:${row}`, `${given.tokens.cols}:${col}`]);
  canvas.addEventListener("pointermove", (event) => {
    const place = placeOf(event);
    showTip(place && cellText(matrix, given, place.row, place.col), event.clientX, event.clientY);
    if (place) light(place);
  });
  canvas.addEventListener("pointerleave", () => showTip(null));
  canvas.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place && given.onCell) given.onCell(place.row, place.col);
  });
  const follow = () => {
    draw(cursor);
    const {left, top} = canvas.getBoundingClientRect();
    said.textContent = cellText(matrix, given, cursor.row, cursor.col);
    light(cursor);
    showTip(said.textContent, left + (cursor.col + 1) * width, top + (cursor.row + 1) * height);
  };
  box.addEventListener("focus", () => { if (box.matches(":focus-visible")) follow(); });
  box.addEventListener("blur", () => {
    showTip(null);
    draw();
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = cellAfter(event.key, cursor, matrix), chooses = ["Enter", " "].includes(event.key) && given.onCell;
    if (!next && !chooses) return;
    event.preventDefault();
    event.stopPropagation(); // within a grid the arrow keys move among its cells, not along the strip
    cursor = next ?? cursor;
    if (chooses) given.onCell(cursor.row, cursor.col);
    else follow();
  });
}

/** "dV[2, 5] (wa, 5): 0.0213": a cell in words. */
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
