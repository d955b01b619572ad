"use strict";
// The view of the checks: is every gradient the slope of the loss? Central differences along random directions, made by
// the engine when the page was written and again here, and identities that hold for every place of the kind.
//
//   ⟨dT, direction⟩, the slope by the gradient, against (L(T + h·direction) − L(T − h·direction)) / 2h, the measured one

/** A line for each gradient, in the order of the backward pass: {symbol, engine: error or null, here or null}. */
function checkLines(view) {
  const here = new Map((checksOf(view) ?? []).map((check) => [check.symbol, check]));
  const engine = view.attention?.checks ?? {};
  return checkedSymbols(view).map((symbol) => (
    {symbol: gradientOf(symbol), engine: engine[symbol] ? Math.max(...engine[symbol].map(({error}) => error)) : null, here: here.get(symbol) ?? null}));
}

function renderChecks(container, view) {
  const lines = checkLines(view), known = lines.some(({engine, here}) => engine !== null || here !== null);
  container.append(checksOf(view) ? verdictOnChecks(view, lines) : measureButton(view), ...(known ? [checkTable(lines, view)] : []), aboutTheColumns(view, lines),
    build("h3", {}, view.result.heads.length > 1 ? `What must hold, in head ${view.state.head + 1}` : "What must hold"),
    ...identities(view.result, view.state.head).map(identityLine));
}

const measureButton = (view) => build("p", {}, build("button", {type: "button", class: "small", "data-key": "checks:measure",
  onclick: () => measure(view, () => setState({}))}, "Measure here"), " The page does so by itself when you pause.");

/** Right or wrong, which are wrong, and where to look first. */
function verdictOnChecks(view, lines) {
  const wrong = lines.filter(({here}) => !here.ok).map(({symbol}) => symbol);
  const worst = lines.reduce((most, line) => (line.here.error > most.here.error ? line : most));
  const names = (symbols) => symbols.flatMap((symbol, n) => [n ? ", " : "", ...withSubscripts(labelOf(view, symbol))]);
  const verdict = wrong.length === 0
    ? fact(true, `All ${lines.length} gradients are the slopes that finite differences measure here; the largest relative error is `,
      exactNumber(worst.here.error, 2), ", of ", ...names([worst.symbol]), ".")
    : fact(false, `${wrong.length} of ${lines.length} gradients are wrong: `, ...names(wrong), ". Going backward, the first is ",
      ...names([wrong[0]]), ": look there first, for what is made of it is wrong too.");
  Object.assign(verdict.dataset, {fact: "checks", wrong: wrong.join(" ")});
  return verdict;
}

/** What the columns are: an error's measure is that of checkTensor() in faults/checks.js, and of explore/checks.py. */
function aboutTheColumns(view, lines) {
  const byEngine = lines.some(({engine}) => engine !== null);
  return build("p", {class: "note"}, "Each tensor is moved along a random direction, and the model runs to its loss. The error is |slope by the gradient − slope measured|, "
    + `relative to the larger of the two, or to what rounding may do where both are nearly 0; right is at most ${formatNumber(TOLERANCE, 1)}. `,
    byEngine ? `The engine measured along two directions in float64, when the page was made${isChanged(view) ? "; what you have changed since then is measured here alone" : ""}. ` : "",
    "To measure a single cell, choose it on the stage and nudge it.");
}

function checkTable(lines, view) {
  const byEngine = lines.some(({engine}) => engine !== null);
  const number = (attributes, value, digits, ...before) => build("td", {...attributes, "data-value": value, title: String(value)}, ...before, formatNumber(value, digits));
  const rows = lines.map(({symbol, engine, here}) => build("tr", {"data-symbol": symbol, class: here !== null && !here.ok ? "wrong" : null},
    build("th", {scope: "row", title: tensorsOf(view)[symbol].name}, build("b", {class: "symbol"}, ...withSubscripts(labelOf(view, symbol)))),
    ...(byEngine ? [engine === null ? build("td", {}, "–") : number({"data-engine": "error"}, engine, 2)] : []),
    ...(here === null ? [build("td", {colspan: "3"}, "not measured")]
      : [number({"data-here": "error"}, here.error, 2, checkMark(here.ok, here.ok ? "right:" : "wrong:"), " "),
        number({"data-here": "analytic"}, here.analytic, 2), number({"data-here": "numeric"}, here.numeric, 2)])));
  const head = ["", ...(byEngine ? ["engine"] : []), byEngine ? "here" : "error", "gradient", "measured"];
  return tableOf({class: "checks"}, head.map(headCell), rows);
}

function identityLine({key, statement, residual, holds}) {
  const line = fact(holds, ...withSubscripts(statement), build("span", {class: "note"}, " residual ", exactNumber(residual, 2)));
  line.dataset.identity = key;
  return line;
}

PANELS.push({id: "checks", title: "Checks", render: renderChecks});
