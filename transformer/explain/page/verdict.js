"use strict";
// Whether the gradients on the page are right: what is said beside the switches, and what the strip marks in red.
//
// How to use:
//   verdictOf(view)   -> {wrong: Set of gradients, count, worst, measured: "engine" | "here" | null}
//   verdictText(view, verdict) -> an element that says so
//   checksOf(view)    -> what `checks` says of the present selection, of the gradients that the page shows
//   isSlow(view)      -> whether that takes so long that the reader should say when
//   labelOf(view, "dXk") -> "dX via K": M is X in self-attention

const checked = new WeakMap(); // by result: a check takes many forward passes, and every redraw asks
const NONE_WRONG = new Set();
const ALL_AT_ONCE = 1e6; // products in a projection of the batch: what is larger takes seconds

const checksOf = (view) => measuredHere(view).found;

function measuredHere(view) {
  const {state, result} = view;
  if (!checked.has(result)) {
    const found = checks(page, state.attention, state.item, optionsOf(state))
      .filter(({symbol}) => symbol !== "Ad" || hasDropout(view));
    checked.set(result, {found, wrong: new Set(found.filter(({ok}) => !ok).map(({symbol}) => gradientOf(symbol)))});
  }
  return checked.get(result);
}

function isSlow({attention, result}) {
  const [items, queries, width] = attention.x.shape;
  return items * queries * width ** 2 > ALL_AT_ONCE && !checked.has(result);
}

/** The engine's word as long as nothing has been changed; after that what is measured here. */
function verdictOf(view) {
  const {state: {broken}, attention} = view;
  const none = {wrong: NONE_WRONG, count: 0, worst: 0, measured: null};
  if (changesOf(view) === "") {
    const errors = Object.values(attention.checks).flat().map(({error}) => error);
    return errors.length === 0 ? none
      : {...none, count: Object.keys(attention.checks).length, worst: Math.max(...errors), measured: "engine"};
  }
  if (isSlow(view) && broken === null) return none;
  const {found, wrong} = measuredHere(view);
  return {wrong, count: found.length, worst: Math.max(...found.map(({error}) => error)), measured: "here"};
}

function verdictText(view, {wrong, count, worst, measured}) {
  const text = make("span", `verdict ${wrong.size ? "bad" : "good"}`);
  text.setAttribute("role", "status");
  if (wrong.size) {
    const names = [...wrong].flatMap((symbol, n) => [n ? ", " : "", ...withSubscripts(labelOf(view, symbol))]);
    text.append(`✗ ${wrong.size} of ${count} gradients are wrong: `, ...names);
  } else if (measured === "here" && view.state.broken) {
    text.append("✓ no check fails: here this mistake changes nothing");
  } else if (measured) {
    text.append(`✓ ${count} gradients ${measured === "engine" ? "checked by" : "measured here, as changed, by"} finite `,
      `differences, largest error ${formatNumber(worst, 2)}`);
  }
  return text;
}

const labelOf = ({attention}, symbol) => (
  attention.m === null ? TENSORS[symbol].label.replace("M", "X") : TENSORS[symbol].label);
