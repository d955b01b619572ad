"use strict";
// The checks panel: is every gradient the slope of the loss? Central differences along random directions, made by the
// engine when the page was written and again here, and identities that hold for every attention.
//
//   ⟨dT, direction⟩, the slope by the gradient, against (L(T + h·direction) − L(T − h·direction)) / 2h, the measured one

/** A line for each gradient, in the order of the backward pass: {symbol, engine: [{error…}, …] or null, here or null}. */
function checkLines(view) {
  const here = new Map((isMeasured(view) ? checksOf(view) : []).map((check) => [check.symbol, check]));
  return checkedSymbols(view).map((symbol) => (
    {symbol: gradientOf(symbol), engine: view.attention?.checks[symbol] ?? null, here: here.get(symbol) ?? null}));
}

function renderChecks(container, view) {
  const lines = checkLines(view);
  const known = lines.some(({engine, here}) => engine ?? here);
  container.append(isMeasured(view) ? verdictOnChecks(view, lines) : measureButton(view), aboutTheColumns(view),
    build("div", {class: "side-by-side"},
      ...(known ? [build("div", {}, build("h3", {}, "Relative errors, gradient by gradient"), scroller("Relative errors", checkTable(lines, view)))] : []),
      build("div", {class: "reading"}, build("h3", {}, view.result.heads.length > 1 ? `What must hold, in head ${view.state.head}` : "What must hold"),
        ...identities(view.result, view.state.head).map(identityLine), aboutTheErrors())));
}

function measureButton(view) {
  const measure = () => {
    checksOf(view);
    setState({});
  };
  return build("p", {class: "panel-controls"},
    build("button", {type: "button", class: "small", "data-key": "checks:measure", onclick: measure}, "Measure here"),
    "Not measured yet: the page does so when you have paused for a moment.");
}

/** Right or wrong, which are wrong, and where to look first. */
function verdictOnChecks(view, lines) {
  const wrong = lines.filter(({here}) => !here.ok).map(({symbol}) => symbol);
  const worst = lines.reduce((most, line) => (line.here.error > most.here.error ? line : most));
  const names = (symbols) => symbols.flatMap((symbol, n) => [n ? ", " : "", ...withSubscripts(labelOf(view, symbol))]);
  const verdict = wrong.length === 0
    ? fact(true, `All ${lines.length} gradients are the slopes that finite differences measure here; the largest relative `,
      "error is ", exactNumber(worst.here.error, 2), ", of ", ...names([worst.symbol]), ".")
    : fact(false, `${wrong.length} of ${lines.length} gradients are wrong: `, ...names(wrong), ". Going backward, the first ",
      "is ", ...names([wrong[0]]), ": look there first, for what is made of it is wrong too.");
  verdict.dataset.fact = "checks";
  verdict.dataset.wrong = wrong.join(" ");
  return verdict;
}

/** Where the two columns come from, and of which state of the page they speak. */
function aboutTheColumns(view) {
  const changes = changesOf(view);
  const none = Object.keys(view.attention?.checks ?? {}).length === 0;
  const engine = none ? ""
    : "The engine moved each tensor of the model along two random directions, and ran the model to its loss in "
      + "float64. ";
  const here = "The page itself moves each tensor along one direction, and runs the model to its loss.";
  const which = changes === "" || none ? "" : ` The engine's column is of the page as it was made; since then ${changes}.`;
  const single = " To measure a single cell, choose it on the stage and nudge it.";
  return build("p", {class: "note"}, engine, here, which, single);
}

/** What an error is relative to: here checkTensor() in checks.js, for the engine relative_error() in explain/checks.py. */
function aboutTheErrors() {
  const note = build("details", {class: "note"}, build("summary", {}, "What an error is relative to"), "An error is |slope by the gradient − slope measured| divided by the larger of ",
    "the two |slopes|. Where the slope is 0, as that of the key bias, both are rounding, and their quotient says nothing: ",
    `so what is divided by is never less than a least slope. ${LEAST} marks the errors that were divided by it. The engine's `,
    "least slope changes the loss by a thousandth of it, if the tensor is moved by its own size. The one here is ",
    `${formatNumber(1 / TOLERANCE, 1)} times the rounding that the measured slope may have: ${formatNumber(ROUNDING, 1)} `,
    "of the loss and Σ|dZ∘Z|, its logits, divided by the step. ", checkMark(true, "right:"), " means an error of at most ",
    `${formatNumber(TOLERANCE, 1)}.`);
  note.dataset.about = "errors";
  return note;
}

const LEAST = "†";

/** Whether the error is smaller than that in proportion to the slopes, since it was divided by the least slope. */
function leastMark({analytic, numeric, error}) {
  const ofSlopes = Math.abs(analytic - numeric) / Math.max(Math.abs(analytic), Math.abs(numeric));
  return error < 0.999 * ofSlopes ? LEAST : "";
}

function checkTable(lines, view) {
  const byEngine = lines.some(({engine}) => engine !== null);
  const head = ["gradient", ...(byEngine ? ["engine, 1st direction", "engine, 2nd direction"] : []), byEngine ? "here" : "error",
    "slope by the gradient", "slope measured"];
  const rows = lines.map(({symbol, engine, here}) => {
    const name = build("th", {scope: "row"}, build("b", {}, ...withSubscripts(labelOf(view, symbol))), " ",
      build("span", {}, tensorsOf(view)[symbol].name));
    return build("tr", {"data-symbol": symbol, class: here !== null && !here.ok ? "wrong" : null},
      name, ...(byEngine ? [engineCell(engine, 0), engineCell(engine, 1)] : []), ...cellsHere(here));
  });
  return tableOf({class: "checks"}, head.map(headCell), rows);
}

function engineCell(engine, n) {
  if (engine === null) return build("td", {class: "absent", "data-engine": n}, "not measured");
  const {error, analytic, numeric} = engine[n];
  return build("td", {"data-engine": n, "data-value": error, title: `gradient ${analytic}, measured ${numeric}`},
    formatNumber(error, 2), leastMark(engine[n]));
}

function cellsHere(here) {
  if (here === null) return [build("td", {class: "absent", colspan: "3"}, "not measured")];
  const number = (name, digits) => build("td", {"data-here": name, "data-value": here[name], title: String(here[name])},
    formatNumber(here[name], digits));
  const error = number("error", 2);
  error.prepend(checkMark(here.ok, here.ok ? "right:" : "wrong:"), " ");
  error.append(leastMark(here));
  return [error, number("analytic", 6), number("numeric", 6)];
}

function identityLine({key, statement, residual, holds}) {
  const rest = build("span", {class: "residual"}, " residual ", exactNumber(residual, 2));
  const line = fact(holds, ...withSubscripts(statement), rest);
  line.dataset.identity = key;
  return line;
}

PANELS.push({id: "checks", title: "Checks", render: renderChecks});
