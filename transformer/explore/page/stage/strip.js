"use strict";
// The strip: the forward pass as tiles from left to right, and below each tile its gradient, right to left.

/** Draw the strip into `container`; `wrong` has the gradients that a check has found wrong. Names stand in the tiles if there is room: for all, for those that explain a letter, or for none. */
function renderStrip(container, view, wrong) {
  const columns = stripColumns(view);
  const row = (name, label, cells) => build("div", {class: `tile-row ${name}`, role: "group", "aria-label": label}, ...cells);
  const tiles = (symbols) => build("div", {class: "tile-column"}, ...symbols.map((symbol) => (
    symbol === null ? build("span", {class: "no-tile"}) : tile(view, symbol, wrong))));
  const strip = build("div", {class: "strip"}, build("span", {class: "direction", title: "Forward"}, "→"),
    row("forward", "Forward pass: tensors, from left to right", columns.map((column) => tiles(column.tiles))),
    build("span", {class: "direction", title: "Under each tensor Z its gradient dZ = ∂loss/∂Z, in numbered steps"}, "←"),
    row("backward", "Backward pass: gradients, in steps from right to left", columns.map((column) => tiles(column.back))));
  strip.style.setProperty("--columns", columns.map(({back}) => `minmax(min-content, ${back.length}fr)`).join(" "));
  container.replaceChildren(strip);
  for (const names of ["few-names", "no-names"]) if (container.scrollWidth > container.clientWidth) strip.classList.add(names);
}

/** A button with the symbol, its name or the number of its step; the chosen one takes part in the tab order. */
function tile(view, symbol, wrong) {
  const matrix = matrixOf(view, symbol), {label, name} = tensorsOf(view)[symbol], isChosen = symbol === tileOf(view, view.state.symbol);
  const step = isGradient(symbol) ? stepNumber(view, symbol) : 0;
  const inWords = [`${symbol}: ${name}`, `${matrix.rows} by ${matrix.cols}`, `norm ${formatNumber(normOf(matrix), 3)}`,
    ...(step ? [`step ${step} of the backward pass`] : []),
    ...(wrong.has(symbol) ? ["wrong: it disagrees with the finite difference"] : [])].join(", ");
  return build("button", {type: "button", class: wrong.has(symbol) ? "tile wrong" : "tile", "data-symbol": symbol, "data-key": `tile:${symbol}`,
    tabindex: isChosen ? "0" : "-1", "aria-current": isChosen && "true", "aria-label": inWords, title: inWords, onclick: () => setState({symbol})},
  build("span", {class: "symbol"}, ...withSubscripts(label)),
  build("span", {class: step ? "tile-step" : "tile-name"}, step ? String(step) : kindOfPlace(view).shortNames[symbol] ?? ""));
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
