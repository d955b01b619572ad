"use strict";
// Colours, and numbers as text.
//
// How to use:
//   paint(kind, value, scale)      -> "rgb(r, g, b)", the colour of a cell; paintRgb gives [r, g, b]
//   (a whole matrix on a canvas, with the stripes of masked cells: image.js)
//   ink(kind, value, scale)        -> the text colour that is legible on it; inkOn(rgb) likewise
//   extent(matrix)                 -> the largest finite |value|: the scale of a "value" or a "gradient"
//   legend(kind, scale)            -> an element: the colour bar with its numbers
//   formatNumber(value)            -> "0.0213", "−4.1·10⁻⁵": four digits, for sums and captions
//   formatter(matrix)              -> a function that writes its cells, with as many decimals each: "−0.0909"
//
// kind is "weight" (attention weights: one hue, always from 0 to 1), "gradient" (blue − 0 + orange, symmetric) or
// "value" (purple − 0 + green, symmetric). The pairs are told apart under every common colour blindness.

const STOPS = {
  light: {
    weight: {positive: ["#f6f6f4", "#cbe7e6", "#83c8c8", "#2f9a9d", "#0a6166", "#053f45"]},
    gradient: {
      negative: ["#f6f6f4", "#c9ddf0", "#86b6de", "#3f86c3", "#0d559c"],
      positive: ["#f6f6f4", "#fbdcbf", "#f5ae74", "#dd7429", "#a8450a"],
    },
    value: {
      negative: ["#f6f6f4", "#e2d6ea", "#bfa3d0", "#9470ae", "#643d82"],
      positive: ["#f6f6f4", "#d5e8d2", "#9fcc9c", "#5ca064", "#256b36"],
    },
  },
  dark: {
    weight: {positive: ["#232831", "#17424a", "#1c6a72", "#2f9ea3", "#7fdcd8", "#c4f5f1"]},
    gradient: {
      negative: ["#232831", "#1f4468", "#2c6ea8", "#56a0dd", "#a5d3fa"],
      positive: ["#232831", "#5e3716", "#a3581b", "#e08a3c", "#ffc78f"],
    },
    value: {
      negative: ["#232831", "#43324f", "#6d4f82", "#9e7cb6", "#d3b7e6"],
      positive: ["#232831", "#27432d", "#3c6b44", "#67a26d", "#aedcae"],
    },
  },
};
const NOT_FINITE = {light: [230, 231, 234], dark: [44, 50, 60]};
const INKS = {dark: "#000000", light: "#ffffff"}; // on any colour one of the two has a contrast of at least 4.5

const rgbOf = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
for (const kinds of Object.values(STOPS)) {
  for (const sides of Object.values(kinds)) {
    for (const side of Object.keys(sides)) sides[side] = sides[side].map(rgbOf);
  }
}

const darkSystem = matchMedia("(prefers-color-scheme: dark)"); // one for all: every cell of a grid asks

/** "light" or "dark": what the reader chose, or else what the system prefers. */
function themeName() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return darkSystem.matches ? "dark" : "light";
}

/** The colour of a cell as [r, g, b]; `scale` is the |value| of full colour (weights: always 1). */
function paintRgb(kind, value, scale, theme = themeName()) {
  if (!Number.isFinite(value)) return NOT_FINITE[theme];
  const sides = STOPS[theme][kind];
  const stops = value < 0 && sides.negative ? sides.negative : sides.positive;
  const full = kind === "weight" ? 1 : scale;
  const share = full > 0 ? Math.min(1, Math.abs(value) / full) : 0;
  const place = share * (stops.length - 1);
  const below = Math.min(stops.length - 2, Math.floor(place));
  return stops[below].map((channel, c) => Math.round(channel + (place - below) * (stops[below + 1][c] - channel)));
}

const cssColour = (rgb) => `rgb(${rgb.join(", ")})`;
const paint = (kind, value, scale) => cssColour(paintRgb(kind, value, scale));

/** Relative luminance (WCAG 2), from 0 to 1. */
function luminance(rgb) {
  const [r, g, b] = rgb.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Black or white, whichever contrasts more with the colour. */
const inkOn = (rgb) => ((luminance(rgb) + 0.05) ** 2 > 0.0525 ? INKS.dark : INKS.light);
const ink = (kind, value, scale) => inkOn(paintRgb(kind, value, scale));

/** The largest finite |value| of a matrix; 0 if there is none. */
function extent(matrix) {
  let most = 0;
  for (const value of matrix.data) {
    if (Number.isFinite(value) && Math.abs(value) > most) most = Math.abs(value);
  }
  return most;
}

const SUPERSCRIPTS = {"-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹"};
const powerOfTen = (exponent) => `10${[...String(exponent)].map((digit) => SUPERSCRIPTS[digit]).join("")}`;
const withMinus = (text) => text.replace("-", "−");

/** A number to `digits` significant digits, with a true minus and without an "e". */
function formatNumber(value, digits = 4) {
  if (Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(value)));
  if (exponent >= -3 && exponent < 5) {
    return withMinus(value.toFixed(Math.max(0, Math.min(digits - 1 - exponent, Math.max(digits + 1, 1 - exponent)))));
  }
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  return withMinus(`${mantissa}·`) + powerOfTen(Number(power));
}

/** How to write the cells of one matrix: each with the decimals that give the largest three digits. */
function formatter(matrix) {
  const most = extent(matrix), exponent = most > 0 ? Math.floor(Math.log10(most)) : 0;
  return (value) => {
    if (value === 0) return "0";
    if (!Number.isFinite(value) || exponent < -4 || exponent > 4) return formatNumber(value, 2);
    return withMinus(value.toFixed(Math.max(0, 2 - exponent))).replace(/^−(0(\.0+)?)$/, "$1");
  };
}

/** The colour bar of a scale, with its ends: an element. */
function legend(kind, scale) {
  const isWeight = kind === "weight", [least, most] = isWeight ? ["0", "1"] : [formatNumber(-scale, 2), formatNumber(scale, 2)];
  const colours = Array.from({length: 11}, (_, n) => paint(kind, isWeight ? n / 10 : n / 5 - 1, 1));
  return build("span", {class: "legend", title: isWeight ? "Attention weights: one hue, always from 0 to 1."
    : "Centred on 0 and symmetric; the ends are the largest absolute value."},
  least, build("span", {class: "legend-bar", style: `background: linear-gradient(to right, ${colours.join(", ")})`}), most);
}
