"use strict";
// What the reader has chosen. All that is drawn follows from it: view.js computes, main.js draws.
//
// How to use:
//   setState({symbol: "dV", cell: {row: 2, col: 0}})   changes fields of `state`, recomputes what must be, and redraws
//   setState({place: "decoder.layers.0.cross_attention"})   a place may be named by its path
//   setState({source: "1.9.2021", target: null})       other texts; target null: the model writes it

const state = {
  source: null,      // the text that the model reads
  target: null,      // the one that it is asked for; null: it writes one itself
  place: 0,          // index into page.places
  item: 0,           // of the batch
  head: 0,
  symbol: null,      // the tile on the stage
  cell: null,        // {row, col} of the result that is written out, or null
  row: 0,            // the chosen query
  scaling: true,     // divide by √d_k
  masking: true,
  edit: null,        // {path, symbol: "Q" | "K" | "V" | "dY", head, row, col, value}
  broken: null,      // a key of BREAKAGES
  nudge: null,       // {difference, gradient, version}: ΔL/ε of the chosen cell, once asked for, with weights of that version
  epsilon: 1e-4,
  text: "usual",     // "usual" | "large"
  theme: "auto",     // "auto" | "light" | "dark"
  panel: "step",
  story: null,       // the id of the story that is being told, or null
  stop: 0,           // where it stands
};

let wanted = null; // all changes since the worker of a large model is waited for, or null

/** Change fields of the state and redraw; fields that a change makes meaningless go back to their defaults. */
function setState(changes) {
  if (wanted) return void Object.assign(wanted, changes);
  try {
    useChanges(changes);
  } catch (error) {
    if (!(error instanceof Waiting)) throw error;
    wanted = {...changes};
    showWaiting();
    settled(() => useChanges(wanted)).finally(() => showWaiting(wanted = null));
  }
}

const showWaiting = () => document.getElementById("loss").setAttribute("aria-busy", String(wanted !== null));

/** Nothing has changed if something must be waited for. */
function useChanges(changes) {
  const before = {...state}, items = [...session.items];
  try {
    changeState(changes);
    Object.assign(document.documentElement.dataset, {theme: state.theme, text: state.text});
    writeAddress();
    redraw();
  } catch (error) {
    if (error instanceof Waiting) {
      Object.assign(state, before);
      session.items = items;
    }
    throw error;
  }
}

function changeState(changes) {
  const asked = madeDefinite(changes);
  const changing = (...fields) => fields.some((field) => field in asked && asked[field] !== state[field]);
  const otherTexts = changing("source", "target");
  if (otherTexts || changing("item")) state.edit = null;
  if (otherTexts || changing("scaling", "masking", "edit", "broken", "cell", "place", "item", "head", "symbol", "row")) state.nudge = null;
  const moved = otherTexts || changing("place", "symbol", "item", "row");
  // A place of another kind opens at the first step of its backward; of the same kind, at the same step.
  if (changing("place") && page.places[asked.place].kind !== page.places[state.place].kind) state.symbol = null;
  Object.assign(state, asked);
  if (state.nudge && state.nudge.version !== session.version) state.nudge = null; // a step has been taken since
  if (otherTexts) useTexts();
  else if ("item" in asked) Object.assign(state, usedTexts());
  const replaced = keepInRange();
  settleCell(asked, moved || replaced);
}

/** With the place's index for its path, an item that there is, and an edit that says of which place it is. */
function madeDefinite(changes) {
  const asked = {...changes};
  if (typeof asked.place === "string") asked.place = Math.max(0, placeIndex(asked.place));
  if ("item" in asked) asked.item = Math.min(asked.item, numItems() - 1);
  if (asked.edit) asked.edit = {path: page.places[asked.place ?? state.place].path, ...asked.edit};
  return asked;
}

/** Another place may lack the selected head, item or tensor. Whether it lacks the tensor, and shows another. */
function keepInRange() {
  state.place = Math.min(state.place, page.places.length - 1);
  const {heads} = currentResult();
  state.head = Math.min(state.head, heads.length - 1);
  const view = currentView();
  if (hasTensor(view, state.symbol)) return false;
  const other = kindOfPlace(view).instead[state.symbol];
  state.symbol = other && hasTensor(view, other) ? other : gradientSymbols(view)[0];
  return true;
}

/** The cell that is asked for, or the one that stays chosen, and the row. */
function settleCell(asked, moved) {
  const view = currentView();
  if ("row" in asked) rememberRow(view, asked.row);
  if (asked.cell) state.cell = inRange(matrixOf(view, state.symbol), asked.cell);
  else if (asked.cell === undefined && moved) state.cell = chosenCell(view, state.symbol);
  if (state.cell) rememberCell(view, state.symbol, state.cell);
  state.row = chosenRow(view);
  rememberRow(view, state.row);
}

const inRange = ({rows, cols}, {row, col}) => ({row: Math.min(row, rows - 1), col: Math.min(col, cols - 1)});

/** Whether the stage can show the tensor: it, or the tile that it belongs to, is in the strip. */
function hasTensor(view, symbol) {
  if (!Object.hasOwn(tensorsOf(view), symbol) || shownSymbol(view, symbol) !== symbol) return false;
  const shown = [...forwardSymbols(view), ...gradientSymbols(view)];
  return shown.includes(tileOf(view, symbol)) && matrixOf(view, symbol) !== null;
}
