"use strict";
// The state of the page, and what is drawn from it.
//
// How to use:
//   setState({symbol: "dV", cell: {row: 2, col: 0}})   changes fields of `state`, recomputes what must be, and redraws
//   currentView() -> {page, state, attention, result, head, labels, mask, commonScale}
//       page       the decoded data                      attention  its entry for the selected attention
//       result     compute(…) for the current options    head       result.heads[state.head]
//       labels     {query: [token…], key: [token…], next: [what a decoder is to write after each
//                  query's token, "" where nobody knows] or null}
//       mask       Matrix of 0/1 (1 = may attend), or null
//       commonScale  the one scale of all gradients if the reader chose so, else null
//   matrixOf(view, symbol) -> the Matrix with that symbol, of the head or shared by the heads
//
// A panel is a file that registers itself: PANELS.push({id: "softmax", title: "Softmax", render(container, view) {…}}).
// `render` gets an empty container each time something changed, and is called for the open panel only. A panel with
// `whole: true` is there for attentions that are known from X and M to Y. Give an element
// that can have the keyboard focus a data-key of its own ("softmax:row:3"): after a redraw the focus returns to it.

const PANELS = [];
const panelsOf = (view) => PANELS.filter(({whole}) => !whole || view.result.problem.whole);

const state = {
  attention: 0,      // index into page.attentions
  item: 0,           // of the batch
  head: 0,
  symbol: "dV",      // the tile on the stage
  cell: {row: 0, col: 0}, // of the result that is written out, or null
  row: 0,            // the query row of the softmax panel
  terms: null,       // how many outer products the slider has added; null: not asked for, all of them
  scaling: true,     // divide by √d_k
  masking: true,
  edit: null,        // {symbol: "Q" | "K" | "V" | "G", head, row, col, value}
  broken: null,      // a key of BREAKAGES
  nudge: null,       // {difference, gradient}: ΔL/ε of the chosen cell, once asked for
  epsilon: 1e-4,
  common: false,     // one colour scale for all gradients
  numbers: false,    // in large grids too
  theme: "auto",     // "auto" | "light" | "dark"
  panel: "softmax",
};

let page = null;
const computed = new Map(); // results by what they depend on; a few, the oldest dropped first

/** The options of `compute` that the switches stand for. */
const optionsOf = ({scaling, masking, edit, broken}) => ({scaling, masking, edit, broken});

/** What `compute` says for the selection, by default with what the switches stand for; kept, since every redraw asks. */
function currentResult(options = optionsOf(state)) {
  const key = JSON.stringify([state.attention, state.item, options]);
  if (!computed.has(key)) {
    if (computed.size >= 8) computed.delete(computed.keys().next().value);
    computed.set(key, compute(page, state.attention, state.item, options));
  }
  return computed.get(key);
}

/** The tokens of an axis of `length`; what the data does not name is padding, and a space is made visible. */
function tokenLabels(side, item, length) {
  const tokens = page.tokens[side][item] ?? [];
  return Array.from({length}, (_, position) => (tokens[position] ?? "<pad>").replace(/^\s+$/, "␣") || "(empty)");
}

/** What the decoder is to write after each token that it has read; after padding, nothing. */
function writtenNext(item, length) {
  const known = page.tokens.next[item] ?? [];
  return tokenLabels("next", item, length).map((label, position) => (known[position] && label !== "<pad>" ? label : ""));
}

function currentView() {
  const attention = page.attentions[state.attention];
  const result = currentResult();
  const head = result.heads[state.head];
  const labels = {
    query: tokenLabels(attention.queries, state.item, head.S.rows),
    key: tokenLabels(attention.keys, state.item, head.S.cols),
    next: attention.queries === "target" ? writtenNext(state.item, head.S.rows) : null,
  };
  const view = {page, state, attention, result, head, labels, mask: head.mask, commonScale: null};
  if (state.common) view.commonScale = Math.max(...gradientSymbols(view).map((symbol) => extent(matrixOf(view, symbol))));
  return view;
}

/** The matrix of a symbol, from the head or from what the heads share. */
function matrixOf(view, symbol) {
  return tensorAt(view.result, view.state.head, symbol);
}

/** Change fields of the state and redraw; fields that a change makes meaningless go back to their defaults. */
function setState(changes) {
  const changing = (...fields) => fields.some((field) => field in changes && changes[field] !== state[field]);
  if (changing("attention", "symbol")) Object.assign(state, {cell: null, terms: null}); // another head has the same cells
  if (changing("attention", "item")) state.edit = null;
  if (changing("scaling", "masking", "edit", "broken", "cell", "attention", "item", "head", "symbol")) state.nudge = null;
  Object.assign(state, changes);
  keepInRange();
  document.documentElement.dataset.theme = state.theme;
  writeHash();
  redraw();
}

/** Another attention may lack the selected head, item, row or tensor, and may have no mask to forget. */
function keepInRange() {
  state.attention = Math.min(state.attention, page.attentions.length - 1);
  const attention = page.attentions[state.attention];
  const [items, queries] = attention.g.shape;
  state.head = Math.min(state.head, attention.numHeads - 1);
  state.item = Math.min(state.item, items - 1);
  state.row = Math.min(state.row, queries - 1);
  const view = currentView();
  if (!hasTensor(view, state.symbol)) Object.assign(state, {symbol: INSTEAD[state.symbol] ?? "dV", cell: null, terms: null});
  if (view.result.broken === null) state.broken = null;
}

const INSTEAD = {M: "X", dM: "dX", Ad: "A", dAd: "dA", Sm: "S", dSm: "dS", G: "dY", C: "O", dC: "dO", Y: "O", dY: "dO"}; // where the tensor on the left is missing

/** Whether the stage can show the tensor: it, or the tile that it belongs to, is in the strip. */
function hasTensor(view, symbol) {
  const shown = [...forwardSymbols(view), ...gradientSymbols(view)];
  if (symbol === "G" || shownSymbol(view, symbol) !== symbol) return false;
  return shown.includes(tileOf(view, symbol)) && matrixOf(view, symbol) !== null;
}

const IN_HASH = ["attention", "item", "head", "symbol", "panel"];

/** The selection in the address, so that a link or a reload comes back to it. */
function writeHash() {
  if (!["file:", "http:", "https:"].includes(location.protocol)) return; // in a notebook the page has no address
  const hash = new URLSearchParams(IN_HASH.map((field) => [field, state[field]]));
  history.replaceState(null, "", `#${hash}`);
}

/** The fields the address names; anything else in it is ignored. */
function readHash() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const changes = {};
  for (const field of ["attention", "item", "head"]) {
    if (/^\d+$/.test(hash.get(field) ?? "")) changes[field] = Number(hash.get(field));
  }
  if (Object.hasOwn(TENSORS, hash.get("symbol") ?? "")) changes.symbol = hash.get("symbol");
  if (PANELS.some((panel) => panel.id === hash.get("panel"))) changes.panel = hash.get("panel");
  return changes;
}
