"use strict";
// Whether the gradients on the page are right: what is said beside the switches, and what the strip marks in red.
//
// How to use:
//   checkedSymbols(view) -> the tensors whose gradients are checked: those that the page shows, path by path
//   verdictOf(view)   -> {wrong: Set of gradients, count, of, worst, measured: "engine" | "here" | null}: `count` of the
//       `of` gradients that the page shows were measured
//   verdictText(view, verdict) -> an element that says so
//   measure(view, onDone)           the checks of checkedSymbols, unless the reader goes on meanwhile
//   measureWhenIdle(view, onDone)   the same when the reader has changed nothing for a while
//   checksOf(view)    -> what they found; undefined before
//
// Three things tell whether a gradient is right. The engine's finite differences, made with the page, stand as long as
// nothing has been changed. After that the page makes its own (faults/checks.js), which measure any gradient, but slowly:
// so a mistake made on purpose there shows at once beside the run without it (besideTheRight).

const checked = new WeakMap(); // by result: its checks
const NONE_WRONG = new Set();

/** Without a mask S̄ is S: the page shows one, and one is counted. */
const checkedSymbols = (view) => checkedOf(view.result).filter((symbol) => (
  shownSymbol(view, symbol) === symbol && recordsWith(view.result, symbol).length > 0));

const checksOf = ({result}) => checked.get(result);

const SETTLED = 700; // milliseconds without a change after which the reader seems to look
let settling = null;
let measuring = null; // the result that is shown: another redraw ends what is measured of the one before

function measureWhenIdle(view, onDone) {
  clearTimeout(settling);
  measuring = view.result;
  if (!verdictOf(view).measured) settling = setTimeout(() => measure(view, onDone), SETTLED);
}

/** One gradient at a time, so that what the reader does never waits for more than one. */
async function measure(view, onDone) {
  const {result} = view, found = [];
  for (const symbol of checkedSymbols(view)) {
    const check = await settled(() => measuring === result && checkTensor(result, symbol));
    if (!check) return;
    found.push(check);
    await new Promise((go) => { setTimeout(go); });
  }
  checked.set(result, found);
  onDone();
}

/** The engine's word as long as nothing has been changed; after that, or without it, what is measured here. */
function verdictOf(view) {
  const {state: {broken}, attention} = view;
  const symbols = checkedSymbols(view);
  const none = {wrong: NONE_WRONG, count: 0, of: symbols.length, worst: 0, measured: null};
  const byEngine = symbols.filter((symbol) => Object.hasOwn(attention?.checks ?? {}, symbol));
  if (!isChanged(view) && byEngine.length > 0) {
    const errors = byEngine.flatMap((symbol) => attention.checks[symbol].map(({error}) => error));
    return {...none, count: byEngine.length, worst: Math.max(...errors), measured: "engine"};
  }
  const found = checksOf(view);
  if (!found) return broken === null ? none : {...none, ...besideTheRight(view, symbols)};
  const wrong = new Set(found.filter(({ok}) => !ok).map(({symbol}) => gradientOf(symbol)));
  return {...none, wrong, count: found.length, worst: Math.max(...found.map(({error}) => error)), measured: "here"};
}

/** Which gradients a mistake has made wrong, by those without it: a second run is quick, a check is not. */
function besideTheRight({result, state}, symbols) {
  const right = currentResult({...optionsOf(state), broken: null});
  const errorOf = (symbol) => Math.max(...recordsWith(result, symbol).map((record, n) => {
    const [made, expected] = [record, recordsWith(right, symbol)[n]].map((one) => one[gradientOf(symbol)]);
    return largestDifference(made, expected) / (Math.max(largestOf(expected), roundingOf(record, symbol)) || 1);
  }));
  const errors = new Map(symbols.map((symbol) => [symbol, errorOf(symbol)]));
  const wrong = new Set(symbols.filter((symbol) => errors.get(symbol) > TOLERANCE).map(gradientOf));
  return {wrong, count: symbols.length, worst: Math.max(...errors.values()), measured: "here"};
}

/** The gradient of a bias is a sum, and that of the key bias 0: far below its terms there is rounding and nothing else. */
const roundingOf = (record, symbol) => (/^b[QKV]$/.test(symbol) ? 1e-6 * largestOf(record[gradientOf(symbol.slice(1))]) : 0);

function verdictText(view, {wrong, count, of, worst, measured}) {
  const right = worst <= TOLERANCE;
  const [state, text] = wrong.size ? ["bad", `✗ ${wrong.size} of ${count} wrong`]
    : view.state.broken ? ["", "the mistake does not touch this place"]
      : [right ? "good" : "", `${right ? "✓ " : ""}${count === of ? count : `${count} of ${of}`} checked${right ? "" : `, error ${formatNumber(worst, 2)}`}`];
  const how = `Gradients, by finite differences ${measured === "engine" ? "of the engine" : "made here"}; largest error ${formatNumber(worst, 2)}: see Checks`;
  return build("span", {class: `verdict ${state}`, role: "status", title: how}, text);
}
