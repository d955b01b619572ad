"use strict";
// Whether the gradients on the page are right: what is said beside the switches, and what the strip marks in red.
//
// How to use:
//   checkedSymbols(view) -> the tensors whose gradients are checked: those that the page shows, path by path
//   verdictOf(view)   -> {wrong: Set of gradients, count, of, worst, measured: "engine" | "here" | null}: `count` of the
//       `of` gradients that the page shows were measured
//   verdictText(view, verdict) -> an element that says so
//   checksOf(view)    -> what `checks` says of the present selection, of checkedSymbols
//   isSlow(view)      -> whether that takes so long that the reader should say when
//   labelOf(view, "dXk") -> "dX via K": M is X in self-attention

const checked = new WeakMap(); // by result: a check takes many forward passes, and every redraw asks
const NONE_WRONG = new Set();
const ALL_AT_ONCE = 1e6; // products in a projection of the batch: what is larger takes seconds

/** Without dropout A′ is A and without a mask S̄ is S: the page shows one, and one is counted. */
const checkedSymbols = (view) => CHECKED.filter((symbol) => (
  shownSymbol(view, symbol) === symbol && recordsWith(view.result, symbol).length > 0));

const checksOf = (view) => measuredHere(view).found;

function measuredHere(view) {
  const {state, result} = view;
  if (!checked.has(result)) {
    const symbols = new Set(checkedSymbols(view));
    const found = checks(page, state.attention, state.item, optionsOf(state)).filter(({symbol}) => symbols.has(symbol));
    checked.set(result, {found, wrong: new Set(found.filter(({ok}) => !ok).map(({symbol}) => gradientOf(symbol)))});
  }
  return checked.get(result);
}

function isSlow({attention, result}) {
  const [items, queries, width] = attention.g.shape;
  return items * queries * width ** 2 > ALL_AT_ONCE && !checked.has(result);
}

/** The engine's word as long as nothing has been changed; after that, or without it, what is measured here. */
function verdictOf(view) {
  const {state: {broken, panel}, attention, result} = view;
  const symbols = checkedSymbols(view);
  const none = {wrong: NONE_WRONG, count: 0, of: symbols.length, worst: 0, measured: null};
  const unchanged = changesOf(view) === "";
  const byEngine = symbols.filter((symbol) => Object.hasOwn(attention.checks, symbol));
  if (unchanged && byEngine.length > 0) {
    const errors = byEngine.flatMap((symbol) => attention.checks[symbol].map(({error}) => error));
    return {...none, count: byEngine.length, worst: Math.max(...errors), measured: "engine"};
  }
  const unasked = unchanged && panel !== "checks" && !checked.has(result);
  if (broken === null && (unasked || isSlow(view))) return none;
  const {found, wrong} = measuredHere(view);
  return {...none, wrong, count: found.length, worst: Math.max(...found.map(({error}) => error)), measured: "here"};
}

function verdictText(view, {wrong, count, of, worst, measured}) {
  const right = measured && worst <= TOLERANCE; // an engine in float32 does not come so close
  const text = make("span", `verdict ${wrong.size ? "bad" : right ? "good" : ""}`);
  text.setAttribute("role", "status");
  const changed = changesOf(view) === "" ? "" : ", as changed,";
  if (wrong.size) {
    const names = [...wrong].flatMap((symbol, n) => [n ? ", " : "", ...withSubscripts(labelOf(view, symbol))]);
    text.append(`✗ ${wrong.size} of ${count} gradients are wrong: `, ...names);
  } else if (measured === "here" && view.state.broken) {
    text.append("✓ no check fails: here this mistake changes nothing");
  } else if (measured) {
    const how = measured === "engine" ? "checked by" : `measured here${changed} by`;
    text.append(`${right ? "✓ " : ""}${count === of ? count : `${count} of ${of}`} gradients ${how} finite differences, `,
      `largest error ${formatNumber(worst, 2)}`);
    const far = measured === "engine" && worst > 0.01;
    if (far) text.append("; zero_grad() before the trace, and float64, make it small");
  } else {
    text.append(`${of} gradients${changed} not measured yet: see Checks`);
  }
  return text;
}

const labelOf = ({attention}, symbol) => (
  attention.m === null ? TENSORS[symbol].label.replace("M", "X") : TENSORS[symbol].label);
