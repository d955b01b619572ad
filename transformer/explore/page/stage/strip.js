"use strict";
// The strip: the forward pass as tiles from left to right, and below each tile its gradient, right to left.

const WIDEST = 300; // pixels of a column, on average
let drawnStrip = []; // what the strip that stands there was drawn from

/** Draw the strip into `container`; `wrong` has the gradients that a check has found wrong. */
function renderStrip(container, view, wrong) {
  const {result, state: {head}} = view;
  const from = [result, head, themeName(), wrong];
  if (from.some((part, n) => part !== drawnStrip[n])) {
    drawnStrip = from;
    container.replaceChildren(stripOf(view, wrong));
  }
  markChosen(container, view);
}

function stripOf(view, wrong) {
  const columns = stripColumns(view);
  const flat = columns.every(({tiles}) => tiles.length === 1); // with room for the text beside the picture
  const strip = make("div", flat ? "strip flat" : "strip");
  strip.style.gridTemplateColumns = columns.map(flat ? flatColumnWidth : columnWidth).join(" ");
  strip.style.maxWidth = `${columns.length * WIDEST}px`; // a few tiles would be mostly empty
  strip.append(direction("forward pass →"));
  for (const {operation} of columns) strip.append(make("div", "operation", ...withSubscripts(operation)));
  strip.append(rowOfTiles(view, columns, false, wrong),
    direction("← backward pass, in numbered steps: under each tensor Z its gradient dZ = ∂loss/∂Z"),
    rowOfTiles(view, columns, true, wrong));
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

const direction = (text) => make("div", "direction", make("span", "", text));

const columnWidth = ({tiles}) => {
  if (tiles.some((line) => line.length > 1)) return "minmax(182px, 1.7fr)";
  return tiles.length > 1 ? "minmax(108px, 1fr)" : "minmax(74px, 1fr)";
};

const flatColumnWidth = ({tiles: [line]}) => (line.length > 1 ? "minmax(236px, 1.6fr)" : "minmax(146px, 1fr)");

/** One of the two rows: the columns' tiles, of the tensors or of their gradients. */
function rowOfTiles(view, columns, backward, wrong) {
  const row = make("div", `tile-row ${backward ? "backward" : "forward"}`);
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", backward ? "Backward pass: gradients, in steps from right to left"
    : "Forward pass: tensors, from left to right");
  for (const {tiles, back} of columns) {
    const column = make("div", `tile-column lines-${tiles.length}`);
    for (const line of backward ? back : tiles) {
      const symbols = line.filter((symbol) => symbol !== null);
      column.append(make("div", "tile-line", ...symbols.map((symbol) => tile(view, symbol, tiles.length === 1, wrong))));
    }
    row.append(column);
  }
  return row;
}

/** A bias stands beside its weight, in a small tile. */
const isBias = (symbol) => /^d?b/.test(symbol);

/** One tile, a button: name, shape, norm and a small picture. */
function tile(view, symbol, tall, wrong) {
  const matrix = matrixOf(view, symbol);
  const {label, name} = tensorsOf(view)[symbol];
  const shape = `${matrix.rows}×${matrix.cols}`, norm = shortNorm(symbol, matrix);
  const bias = isBias(symbol), isWrong = wrong.has(symbol);
  const button = make("button", ["tile", tall ? "tall" : "", bias ? "bias" : "", isWrong ? "wrong" : ""].join(" ").trim());
  button.type = "button";
  Object.assign(button.dataset, {symbol, key: `tile:${symbol}`, norm: normOf(matrix)});
  const step = isGradient(symbol) ? stepNumber(view, symbol) : 0;
  const inWords = [`${symbol}: ${name}`, `${matrix.rows} by ${matrix.cols}`, `norm ${norm}`,
    ...(step ? [`step ${step} of the backward pass`] : []),
    ...(isWrong ? ["wrong: it disagrees with the finite difference"] : [])].join(", ");
  button.setAttribute("aria-label", inWords);
  button.title = inWords;
  const number = step ? [make("span", "tile-step", String(step))] : [];
  // In a small tile the number stands in the line of the symbol, where it covers nothing.
  const text = make("span", "tile-text", make("span", "tile-symbol", ...withSubscripts(label), ...(tall ? [] : number)));
  if (tall) text.append(make("span", "tile-name", kindOfPlace(view).shortNames[symbol] ?? ""));
  const isNumber = matrix.data.length === 1;
  if (!isNumber) text.append(make("span", "tile-shape", shape), make("span", "tile-norm", make("span", "norm-sign", "‖·‖ "), norm));
  const picture = isNumber ? make("span", "tile-number", formatNumber(matrix.data[0], 4)) : bias ? "" : thumbnail(view, symbol, matrix, tall);
  if (picture && !isNumber) {
    const count = [matrix.rows, matrix.cols];
    showsTokens(button, {...tokensOfTensor(view, symbol), count, cellAt: (row, col) => cellOfCanvas(picture, count, row, col)});
  }
  button.append(picture, text);
  if (tall) button.append(...number);
  button.addEventListener("click", () => setState({symbol}));
  return button;
}

/** The norm with three digits; where it needs a power of ten there is room for two, in the small tile of a bias for one. */
function shortNorm(symbol, matrix) {
  const norm = normOf(matrix);
  if (norm >= 1e-3) return formatNumber(norm, 3);
  return formatNumber(norm, isBias(symbol) ? 1 : 2);
}

const LONGEST = 4; // sides of a picture: a row of many features would be a line too thin to see
const canvases = new Map(); // by symbol: to show a new one takes the browser longer than to draw on it

/** A small picture of a matrix, on the canvas that showed the symbol before. */
function thumbnail(view, symbol, matrix, tall) {
  const [room, height] = tall ? [64, 46] : [28, 32];
  if (!canvases.has(symbol)) canvases.set(symbol, make("canvas", "thumbnail"));
  const canvas = canvases.get(symbol);
  canvas.setAttribute("aria-hidden", "true");
  const shape = Math.max(1 / LONGEST, Math.min(LONGEST, matrix.cols / matrix.rows));
  const width = Math.min(room, height * shape);
  const kind = paintOf(view, symbol);
  drawMatrix(canvas, matrix, {kind, scale: extent(matrix), mask: maskFor(view, symbol), width: Math.round(width), height: Math.round(width / shape)});
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
