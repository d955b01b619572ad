"use strict";
// A large grid: one canvas, and the number of the cell under the pointer or the keyboard's cursor as text. Called by
// grid() alone.

const IMAGE_WIDTH = 460, IMAGE_HEIGHT = 420; // what a grid tries to fit into; beyond the smallest cell it scrolls
const SMALLEST_LABELLED = 8, SMALLEST_CELL = 2, LARGEST_CELL = 22, LABEL_HEIGHT = 12;
const TWO_LETTERS = 16, LETTER_WIDTH = 10, DIGIT_WIDTH = 8; // pixels that they take side by side

function gridImage(matrix, given, scroller) {
  const size = cellSize(matrix, given);
  const box = make("div", "image-grid");
  box.tabIndex = 0;
  box.dataset.key = `${given.name}:image`;
  box.setAttribute("role", "group");
  const keys = `the arrow keys move among the cells${given.onCell ? ", Enter chooses one" : ""}`;
  box.setAttribute("aria-label", `${given.name}, ${matrix.rows} by ${matrix.cols}, as an image; ${keys}`);
  const canvas = make("canvas");
  const said = make("span", "visually-hidden");
  said.setAttribute("aria-live", "polite");
  box.append(make("span", "image-corner"), imageLabels("top", given.colLabels, size.width, given.tokens.cols),
    imageLabels("left", given.rowLabels, size.height, given.tokens.rows), canvas, said);
  drawImage(canvas, matrix, given, size, given.selected);
  listenToImage(box, canvas, said, matrix, given, size, scroller);
  return box;
}

/** Width and height of a cell: rows and columns named by tokens need room for the text. */
function cellSize(matrix, given) {
  if (given.cell) return {width: given.cell, height: given.cell};
  const least = (labels) => (labels.some((label, n) => label !== String(n)) ? SMALLEST_LABELLED : SMALLEST_CELL);
  const fit = (room, count, smallest) => Math.max(smallest, Math.min(LARGEST_CELL, Math.floor(room / count)));
  const width = fit(given.room, matrix.cols, least(given.colLabels));
  return {width, height: Math.min(fit(IMAGE_HEIGHT, matrix.rows, least(given.rowLabels)), Math.max(LABEL_HEIGHT + 1, 2 * width))};
}

/** Where there is no room for the number of an occurrence, who points at the label sees it. */
const withoutNumber = (text, side, size) => (side === "top" && size < TWO_LETTERS ? text.replace(/[₀-₉]+$/, "") : text);

/** The labels beside the image, as many as there is room for. */
function imageLabels(side, labels, size, axis) {
  const strip = make("div", `image-labels ${side}`);
  strip.setAttribute("aria-hidden", "true"); // each cell says its own
  const numbered = side === "top" && labels.every((label, n) => label === String(n)); // numbers are never turned
  const turned = labels.filter((text) => [...withoutNumber(text, side, size)].length > 1).length;
  const needed = numbered ? DIGIT_WIDTH * (String(labels.length - 1).length + 1)
    : side === "top" && turned < 2 ? LETTER_WIDTH : LABEL_HEIGHT; // one turned label, as "<eos>", has room beside letters
  const every = [1, 2, 4, 8, 16, 32, 64].find((n) => n * size >= needed) ?? 64;
  labels.forEach((text, n) => {
    const shown = withoutNumber(text, side, size);
    const short = numbered || (side === "top" && [...shown].length <= 2 && size * every >= needed);
    const label = make("span", short ? "short" : "", n % every === 0 ? shown : "");
    label.style[side === "top" ? "width" : "height"] = `${size}px`;
    label.title = text;
    if (axis) standsFor(label, {...axis, place: n});
    strip.append(label);
  });
  return strip;
}

function drawImage(canvas, matrix, given, {width, height}, cursor) {
  const [wide, high] = [matrix.cols * width, matrix.rows * height];
  const gap = Math.min(width, height) >= 8 ? 1 : 0;
  const context = drawMatrix(canvas, matrix, {...given, width: wide, height: high, gap});
  const {highlight} = given;
  if (highlight.length) {
    const parts = highlight.map((part) => rectangleOf(part, matrix, width, height));
    context.beginPath(); // a veil over all but the highlighted
    context.rect(0, 0, wide, high);
    for (const part of parts) context.rect(...part);
    context.globalAlpha = 0.5;
    context.fillStyle = cssColour(SURFACE[themeName()]);
    context.fill("evenodd");
    context.globalAlpha = 1;
    outline(context, parts);
  }
  if (cursor) outline(context, [rectangleOf(cursor, matrix, width, height)]);
}

/** [x, y, width, height] of a row, a column or a cell. */
function rectangleOf(part, matrix, width, height) {
  const [row, rows] = (part.row ?? null) === null ? [0, matrix.rows] : [part.row, 1];
  const [col, cols] = (part.col ?? null) === null ? [0, matrix.cols] : [part.col, 1];
  return [col * width, row * height, cols * width, rows * height];
}

function outline(context, rectangles) {
  context.strokeStyle = MARK[themeName()];
  context.lineWidth = 2;
  for (const [x, y, width, height] of rectangles) context.strokeRect(x, y, width, height);
}

function listenToImage(box, canvas, said, matrix, given, size, scroller) {
  let cursor = given.selected ?? {row: 0, col: 0};
  const placeOf = (event) => {
    const {left, top} = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - top) / size.height), col = Math.floor((event.clientX - left) / size.width);
    return row >= 0 && col >= 0 && row < matrix.rows && col < matrix.cols ? {row, col} : null;
  };
  canvas.addEventListener("pointermove", (event) => {
    const place = placeOf(event);
    showTip(place && cellText(matrix, given, place.row, place.col), event.clientX, event.clientY);
    if (place) highlightCell(scroller, place.row, place.col);
  });
  canvas.addEventListener("pointerleave", () => showTip(null));
  canvas.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place && given.onCell) given.onCell(place.row, place.col);
  });
  const follow = () => {
    drawImage(canvas, matrix, given, size, cursor);
    const {left, top} = canvas.getBoundingClientRect();
    const text = cellText(matrix, given, cursor.row, cursor.col);
    said.textContent = text;
    highlightCell(scroller, cursor.row, cursor.col);
    showTip(text, left + (cursor.col + 1) * size.width, top + (cursor.row + 1) * size.height);
  };
  box.addEventListener("focus", () => { if (box.matches(":focus-visible")) follow(); });
  box.addEventListener("blur", () => {
    showTip(null);
    drawImage(canvas, matrix, given, size, given.selected);
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.key === "Enter" || event.key === " ") && given.onCell) {
      event.preventDefault();
      given.onCell(cursor.row, cursor.col);
      return;
    }
    const next = cellAfter(event.key, cursor, matrix);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    cursor = next;
    follow();
  });
}
