"use strict";
// The checks panel: is every gradient the slope of the loss? Central differences along random directions, made by the
// engine when the page was written and again here, and identities that hold for every attention.
//
//   ⟨dT, direction⟩, the gradient's slope, against (L(T + h·direction) − L(T − h·direction)) / 2h, the measured one

const checked = new WeakMap(); // by result: a check takes many forward passes

const ALL_AT_ONCE = 1e6; // products in a projection of the batch: beyond this a check takes a second or more, and waits to be asked for

/** What `checks` says of the present selection; kept, since every redraw asks. */
function checksOf({page, state, result}) {
  if (!checked.has(result)) checked.set(result, checks(page, state.attention, state.item, optionsOf(state)));
  return checked.get(result);
}

/** Whether checking takes so long that the reader should say when. */
function isSlow({attention, result}) {
  const [items, queries, width] = attention.x.shape;
  return items * queries * width ** 2 > ALL_AT_ONCE && !checked.has(result);
}

/** One line for each gradient, in the order of the backward pass: {symbol, engine: [{error…}, …] or null, here}. */
function checkLines(view) {
  const here = new Map((isSlow(view) ? [] : checksOf(view)).map((check) => [gradientOf(tensorOf(check.symbol)), check]));
  const engine = Object.fromEntries(Object.entries(view.attention.checks).map(([symbol, found]) => [gradientOf(tensorOf(symbol)), found]));
  if (view.attention.dropped === null) engine.dAd = engine.dA; // without dropout A′ is A, and the engine has one tensor
  const symbols = here.size > 0 ? [...here.keys()] : gradientSymbols(view);
  return symbols.map((symbol) => ({symbol, engine: engine[symbol] ?? null, here: here.get(symbol) ?? null}));
}

function renderChecks(container, view) {
  const lines = checkLines(view);
  const facts = identities(view.result, view.state.head);
  container.append(isSlow(view) ? measureButton(view) : verdictOnChecks(view, lines), aboutTheColumns(view),
    build("h3", {}, "Relative errors, gradient by gradient"), scroller("Relative errors", checkTable(lines, view)),
    build("h3", {}, `What must hold, in head ${view.state.head}`), identityList(facts));
}

function measureButton(view) {
  return build("p", {class: "panel-controls"}, build("button", {type: "button", class: "small", "data-key": "checks:measure", onclick: () => {
    checksOf(view);
    setState({});
  }}, "Measure here"), "This attention is large: measuring it takes a while.");
}

/** Right or wrong, which are wrong, and where the fault is. */
function verdictOnChecks(view, lines) {
  const measured = lines.filter(({here}) => here !== null);
  const wrong = measured.filter(({here}) => !here.ok).map(({symbol}) => symbol);
  const worst = measured.reduce((most, line) => (line.here.error > most.here.error ? line : most));
  const list = (symbols) => symbols.flatMap((symbol, n) => [n ? ", " : "", ...labelOf(symbol, view)]);
  const verdict = wrong.length === 0
    ? fact(true, `All ${measured.length} gradients are the slopes that finite differences measure here; the largest relative error is `,
      exactNumber(worst.here.error, 2), ", of ", ...labelOf(worst.symbol, view), ".")
    : fact(false, `${wrong.length} of ${measured.length} gradients are wrong: `, ...list(wrong), ". Going backward, the first is ",
      ...labelOf(wrong[0], view), ": look there first, for what is made of it is wrong too.");
  verdict.dataset.fact = "checks";
  verdict.dataset.wrong = wrong.join(" ");
  return verdict;
}

/** In self-attention M is X. */
const labelOf = (symbol, {attention}) => withSubscripts(
  attention.m === null ? TENSORS[symbol].label.replace("M", "X") : TENSORS[symbol].label);

/** Where the two columns come from, and of which state of the page they speak. */
function aboutTheColumns(view) {
  const changes = changesOf(view);
  const none = Object.keys(view.attention.checks).length === 0;
  const engine = none ? "The engine's errors were not measured when this page was made. "
    : `The engine moved each tensor of the model along two random directions, and ran the model to its loss in ${page.precision}. `;
  const here = "The page itself moves each tensor along one direction, and measures ⟨G, Y⟩, the part of the loss that is linear in this attention's output.";
  const which = changes === "" || none ? "" : ` The engine's column is of the page as it was made; since then ${changes}.`;
  return build("p", {class: "note"}, engine, here, which);
}

function checkTable(lines, view) {
  const head = ["gradient", "engine, 1st direction", "engine, 2nd direction", "here", "slope by the gradient", "slope measured"];
  const rows = lines.map(({symbol, engine, here}) => build("tr", {"data-symbol": symbol, class: here !== null && !here.ok ? "wrong" : null},
    build("th", {scope: "row"}, build("b", {class: "symbol"}, ...labelOf(symbol, view)), " ", build("span", {}, TENSORS[symbol].name)),
    ...[0, 1].map((n) => engineCell(engine?.[n], n)), ...cellsHere(here)));
  return build("table", {class: "checks"}, build("thead", {}, build("tr", {}, ...head.map((text) => build("th", {scope: "col"}, text)))), build("tbody", {}, ...rows));
}

function engineCell(found, n) {
  if (found === undefined) return build("td", {class: "absent", "data-engine": n}, "not measured");
  return build("td", {"data-engine": n, "data-value": found.error, title: `gradient ${found.analytic}, measured ${found.numeric}`},
    formatNumber(found.error, 2));
}

function cellsHere(here) {
  if (here === null) return [build("td", {class: "absent", colspan: "3"}, "not measured")];
  const mark = build("span", {class: here.ok ? "mark good" : "mark bad", role: "img", "aria-label": here.ok ? "right:" : "wrong:"}, here.ok ? "✓" : "✗");
  const number = (name, value, digits) => build("td", {"data-here": name, "data-value": value, title: String(value)}, formatNumber(value, digits));
  const error = number("error", here.error, 2);
  error.prepend(mark, " ");
  return [error, number("analytic", here.analytic, 6), number("numeric", here.numeric, 6)];
}

function identityList(facts) {
  const items = facts.map(({key, statement, residual, holds}) => {
    const item = fact(holds, ...withSubscripts(statement), build("span", {class: "residual"}, " residual ", exactNumber(residual, 2)));
    item.dataset.identity = key;
    return item;
  });
  return build("div", {class: "identities"}, ...items);
}

PANELS.push({id: "checks", title: "Checks", render: renderChecks});
