"use strict";
// The strip: the forward pass as tiles from left to right, and below each tile its gradient, right to left.

const PICTURE = {width: 22, height: 15}; // pixels that a tile's picture may take
const ROOM_OF_TILE = 4; // letters' heights: with less, tiles have no picture
let drawnStrip = []; // what the strip that stands there was drawn from

/** Draw the strip into `container`; `wrong` has the gradients that a check has found wrong. */
function renderStrip(container, view, wrong) {
  const from = [view.result, view.state.head, themeName(), wrong];
  if (from.some((part, n) => part !== drawnStrip[n])) {
    drawnStrip = from;
    container.replaceChildren(stripOf(view, wrong));
  }
  markChosen(container, view);
}

function stripOf(view, wrong) {
  const columns = stripColumns(view);
  const row = (name, label, cells) => build("div", {class: `tile-row ${name}`, role: "group", "aria-label": label}, ...cells);
  const tiles = (symbols) => build("div", {class: "tile-column"}, ...symbols.flat().map((symbol) => (
    symbol === null ? build("span", {class: "no-tile"}) : tile(view, symbol, wrong))));
  const count = columns.flatMap((column) => column.tiles.flat()).length;
  const narrow = document.getElementById("strip").clientWidth < count * ROOM_OF_TILE * rem();
  const strip = build("div", {class: narrow ? "strip many" : "strip"}, build("span", {class: "direction", title: "Forward"}, "→"),
    row("forward", "Forward pass: tensors, from left to right", columns.map((column) => tiles(column.tiles))),
    build("span", {class: "direction", title: "Under each tensor Z its gradient dZ = ∂loss/∂Z, in numbered steps"}, "←"),
    row("backward", "Backward pass: gradients, in steps from right to left", columns.map((column) => tiles(column.back))));
  strip.style.setProperty("--columns", columns.map(({tiles: lines}) => `minmax(min-content, ${lines.flat().length}fr)`).join(" "));
  return strip;
}

/** The chosen tile is the one that takes part in the tab order; the arrow keys lead to the others. */
function markChosen(container, view) {
  for (const button of container.querySelectorAll(".tile")) {
    const chosen = button.dataset.symbol === tileOf(view, view.state.symbol);
    button.tabIndex = chosen ? 0 : -1;
    if (chosen) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

/** One tile, a button: the symbol, a small picture and the number of the step. */
function tile(view, symbol, wrong) {
  const matrix = matrixOf(view, symbol), {label, name} = tensorsOf(view)[symbol];
  const step = isGradient(symbol) ? stepNumber(view, symbol) : 0;
  const inWords = [`${symbol}: ${name}`, `${matrix.rows} by ${matrix.cols}`, `norm ${formatNumber(normOf(matrix), 3)}`,
    ...(step ? [`step ${step} of the backward pass`] : []),
    ...(wrong.has(symbol) ? ["wrong: it disagrees with the finite difference"] : [])].join(", ");
  const picture = thumbnail(view, symbol, matrix), count = [matrix.rows, matrix.cols];
  const button = build("button", {type: "button", class: wrong.has(symbol) ? "tile wrong" : "tile", "data-symbol": symbol, "data-key": `tile:${symbol}`,
    "aria-label": inWords, title: inWords, onclick: () => setState({symbol})},
    build("span", {class: "symbol"}, ...withSubscripts(label)),
    build("span", {class: "tile-line"}, picture, step ? build("span", {class: "tile-step"}, String(step)) : null));
  return showsTokens(button, {...tokensOfTensor(view, symbol), count, cellAt: (row, col) => cellOfCanvas(picture, count, row, col)});
}

const canvases = new Map(); // by symbol: to show a new one takes the browser longer than to draw on it

/** A small picture of a matrix, on the canvas that showed the symbol before. */
function thumbnail(view, symbol, matrix) {
  if (!canvases.has(symbol)) canvases.set(symbol, make("canvas", "thumbnail"));
  const canvas = canvases.get(symbol), shape = matrix.cols / matrix.rows;
  const width = Math.max(5, Math.min(PICTURE.width, Math.round(PICTURE.height * shape)));
  const height = Math.max(4, Math.min(PICTURE.height, Math.round(PICTURE.width / shape)));
  canvas.setAttribute("aria-hidden", "true");
  drawMatrix(canvas, matrix, {kind: paintOf(view, symbol), scale: extent(matrix), mask: maskFor(view, symbol), width, height});
  return canvas;
}

/** "W_Q" and "d_k" with their subscripts as elements. */
function withSubscripts(text) {
  return text.split(/_([A-Za-z]+)/).map((part, n) => (n % 2 ? make("sub", "", part) : part));
}

/** Move along the rows of the strip: to the next tile or the one before, or between a tensor and its gradient. */
function symbolAfter(key, view) {
  const symbol = tileOf(view, view.state.symbol);
  if (key === "ArrowUp" || key === "ArrowDown") {
    return (key === "ArrowDown") === isGradient(symbol) ? symbol : partnerOf(view, symbol);
  }
  const row = isGradient(symbol) ? gradientSymbols(view) : forwardSymbols(view);
  // In the picture the forward pass goes right and the backward pass left, and so do the keys.
  const step = (key === "ArrowRight") === isGradient(symbol) ? -1 : 1;
  return row[Math.max(0, Math.min(row.length - 1, row.indexOf(symbol) + step))];
}
