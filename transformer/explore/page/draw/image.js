"use strict";
// A matrix drawn on a canvas, a rectangle for each cell: fast enough for many thousands of cells at once.
//
// How to use:
//   drawMatrix(canvas, matrix, {kind, scale, mask, width, height, gap})   width and height: of the whole, in CSS pixels

const PALETTE_STEPS = 256;
const palettes = new Map(); // by theme and kind: the colours from −scale to scale

function paletteOf(kind, theme) {
  const key = `${theme} ${kind}`;
  if (!palettes.has(key)) {
    const colours = Array.from({length: 2 * PALETTE_STEPS + 1}, (_, n) => paintRgb(kind, n / PALETTE_STEPS - 1, 1, theme));
    palettes.set(key, colours);
  }
  return palettes.get(key);
}

const pixels = document.createElement("canvas"); // one for all: a new one for each picture takes longer than drawing it

/** The pixel of each cell, on a canvas of cols×rows pixels that the next call uses again. */
function pixelsOf(matrix, kind, scale, theme) {
  const palette = paletteOf(kind, theme);
  pixels.width = matrix.cols;
  pixels.height = matrix.rows;
  const context = pixels.getContext("2d", {willReadFrequently: true});
  const image = context.createImageData(matrix.cols, matrix.rows);
  const full = kind === "weight" ? 1 : scale;
  for (let n = 0; n < matrix.data.length; n++) {
    const value = matrix.data[n];
    const share = full > 0 ? Math.max(-1, Math.min(1, value / full)) : 0;
    image.data.set(Number.isFinite(value) ? palette[Math.round((share + 1) * PALETTE_STEPS)] : NOT_FINITE[theme], 4 * n);
    image.data[4 * n + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return pixels;
}

function drawMatrix(canvas, matrix, {kind, scale, mask = null, width, height, gap = 0}) {
  const theme = themeName();
  const sharp = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(sharp, sharp);
  context.imageSmoothingEnabled = width <= matrix.cols || height <= matrix.rows;
  context.drawImage(pixelsOf(matrix, kind, scale, theme), 0, 0, width, height);
  const [cellWidth, cellHeight] = [width / matrix.cols, height / matrix.rows];
  if (mask !== null) hatchMasked(context, mask, cellWidth, cellHeight, theme);
  if (gap > 0) drawGaps(context, matrix, cellWidth, cellHeight, gap);
  return context;
}

/** Stripes over the cells that the mask forbids, in one go. */
function hatchMasked(context, mask, cellWidth, cellHeight, theme) {
  context.beginPath();
  for (let row = 0; row < mask.rows; row++) {
    for (let col = 0; col < mask.cols; col++) {
      if (mask.at(row, col) === 0) context.rect(col * cellWidth, row * cellHeight, cellWidth, cellHeight);
    }
  }
  context.fillStyle = context.createPattern(stripes(theme), "repeat");
  context.fill();
}

/** A tile of diagonal stripes. */
function stripes(theme) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 4;
  const context = canvas.getContext("2d");
  context.fillStyle = theme === "dark" ? "rgba(255, 255, 255, 0.4)" : "rgba(20, 24, 31, 0.4)";
  for (let n = 0; n < 4; n++) context.fillRect(n, 3 - n, 1, 1);
  return canvas;
}

/** Lines of nothing between the cells. */
function drawGaps(context, {rows, cols}, cellWidth, cellHeight, gap) {
  for (let row = 1; row <= rows; row++) context.clearRect(0, row * cellHeight - gap, cols * cellWidth, gap);
  for (let col = 1; col <= cols; col++) context.clearRect(col * cellWidth - gap, 0, gap, rows * cellHeight);
}
