"use strict";
// Which tensors there are, in which order the forward and the backward pass make them, and where they stand in the strip.
//
// How to use:
//   stripColumns(view) -> [{operation, tiles: [[symbol, …] for each line]}], left to right
//   forwardSymbols(view), gradientSymbols(view) -> the tiles in the order in which they are made
//   stepNumber(view, "dV") -> 6: its place in the backward pass, counted from 1
//   kindOf(symbol) -> "weight", "value" or "gradient"

const BACKWARD_ORDER = ["dY", "dbO", "dWO", "dC", "dO", "dV", "dAd", "dA", "dSm", "dS", "dR", "dQ", "dK",
  "dbQ", "dbK", "dbV", "dWQ", "dWK", "dWV", "dX", "dM"];
const FORWARD_ORDER = ["X", "M", "WQ", "bQ", "WK", "bK", "WV", "bV", "Q", "K", "V", "R", "S", "Sm", "A", "Ad", "O", "C",
  "WO", "bO", "Y"];

const isGradient = (symbol) => symbol.startsWith("d") || symbol === "D";
const isBias = (symbol) => /^d?b[QKVO]$/.test(symbol);
const gradientOf = (symbol) => `d${symbol}`;
const tensorOf = (symbol) => (isGradient(symbol) ? symbol.slice(1) : symbol);

/** The tile that a tensor without one of its own belongs to. */
const TILES = {G: "dY", D: "dSm", dXq: "dX", dXk: "dX", dXv: "dX"};
const tileOf = (view, symbol) => shownSymbol(view, TILES[symbol] ?? symbol);

function kindOf(symbol) {
  if (isGradient(symbol) || symbol === "D" || symbol === "G") return "gradient";
  return symbol === "A" || symbol === "Ad" ? "weight" : "value";
}

/** The columns of the strip. A line of tiles stands under the operation that makes them; what is not done here is missing. */
function stripColumns(view) {
  const crossed = view.attention.m !== null, dropped = hasDropout(view);
  const {whole, joined} = view.result.problem;
  const withBias = (weight, bias) => (matrixOf(view, bias) ? [weight, bias] : [weight]);
  return [
    ...(whole ? [{operation: "input", tiles: crossed ? [["X"], ["M"]] : [["X"]]},
      {operation: "weights", tiles: [withBias("WQ", "bQ"), withBias("WK", "bK"), withBias("WV", "bV")]}] : []),
    {operation: whole ? "· W + b" : "given", tiles: [["Q"], ["K"], ["V"]]},
    {operation: "Q Kᵀ", tiles: [["R"]]},
    {operation: view.attention.usualScale ? "÷ √d_k" : `· ${scaleText(view.attention)}`, tiles: [["S"]]},
    ...(hasMask(view) ? [{operation: "mask", tiles: [["Sm"]]}] : []),
    {operation: "softmax", tiles: [["A"]]},
    ...(dropped ? [{operation: "dropout", tiles: [["Ad"]]}] : []),
    {operation: "· V", tiles: [["O"]]},
    ...(joined ? [{operation: "concat", tiles: [["C"]]}] : []),
    ...(whole ? [{operation: "weights", tiles: [withBias("WO", "bO")]}, {operation: "· W_O + b", tiles: [["Y"]]}] : []),
  ];
}

function forwardSymbols(view) {
  const shown = new Set(stripColumns(view).flatMap((column) => column.tiles.flat()));
  return FORWARD_ORDER.filter((symbol) => shown.has(symbol));
}

function gradientSymbols(view) {
  const shown = new Set(forwardSymbols(view));
  return BACKWARD_ORDER.filter((symbol) => shown.has(tensorOf(symbol)));
}

const stepNumber = (view, symbol) => gradientSymbols(view).indexOf(symbol) + 1;

/** The mask as far as it concerns a tensor: hatched are the cells of T×S tensors from the mask on, forward and back. */
function maskFor(view, symbol) {
  const masked = ["Sm", "A", "Ad"].includes(symbol) || ["dAd", "dA", "dSm", "dS", "dR"].includes(symbol);
  return masked && view.state.masking ? view.mask : null;
}
