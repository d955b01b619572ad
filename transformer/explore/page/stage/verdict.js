"use strict";
// Whether the gradients on the page are right: what is said beside the switches, and what the strip marks in red.
//
// How to use:
//   checkedSymbols(view) -> the tensors whose gradients are checked: those that the page shows, path by path
//   verdictOf(view)   -> {wrong: Set of gradients, count, of, worst, measured: "engine" | "here" | null}: `count` of the
//       `of` gradients that the page shows were measured
//   verdictText(view, verdict) -> an element that says so
//   checksOf(view)    -> what `checks` says of the present selection, of checkedSymbols
//   measureWhenIdle(view, onDone)   measures them when the browser has nothing else to do
//   isMeasured(view)  -> whether that has been done
//
// Three things tell whether a gradient is right. The engine's finite differences, made with the page, stand as long as
// nothing has been changed. After that the page makes its own (faults/checks.js), which measure any gradient, but slowly:
// so a mistake made on purpose there shows at once beside the run without it (besideTheRight).

const checked = new WeakMap(); // by result: a check takes many forward passes, and every redraw asks
const NONE_WRONG = new Set();

/** Without a mask S̄ is S: the page shows one, and one is counted. */
const checkedSymbols = (view) => checkedOf(view.result).filter((symbol) => (
  shownSymbol(view, symbol) === symbol && recordsWith(view.result, symbol).length > 0));

const checksOf = (view) => measuredHere(view).found;

function measuredHere(view) {
  const {result} = view;
  if (!checked.has(result)) noteMeasured(result, checkedSymbols(view).map((symbol) => checkTensor(result, symbol)));
  return checked.get(result);
}

const noteMeasured = (result, found) => (
  checked.set(result, {found, wrong: new Set(found.filter(({ok}) => !ok).map(({symbol}) => gradientOf(symbol)))}));

const SETTLED = 700; // milliseconds without a change after which the reader seems to look
const whenIdle = (work) => (window.requestIdleCallback ? requestIdleCallback(work) : setTimeout(work, 50)); // not in Safari
let settling = null;
let measuring = null; // the result whose gradients are measured when there is time; another redraw ends that

/** One gradient at a time, so that what the reader does never waits for more than one. */
function measureWhenIdle(view, onDone) {
  clearTimeout(settling);
  const {result} = view;
  measuring = result;
  if (verdictOf(view).measured) return;
  const symbols = checkedSymbols(view), found = [];
  const measureNext = async () => {
    if (measuring !== result || checked.has(result)) return;
    const check = await settled(() => measuring === result && checkTensor(result, symbols[found.length]));
    if (!check) return;
    found.push(check);
    if (found.length < symbols.length) {
      whenIdle(measureNext);
      return;
    }
    noteMeasured(result, found);
    onDone();
  };
  settling = setTimeout(() => whenIdle(measureNext), SETTLED);
}

const isMeasured = ({result}) => checked.has(result);

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
  if (!isMeasured(view)) return broken === null ? none : {...none, ...besideTheRight(view, symbols)};
  const {found, wrong} = measuredHere(view);
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
