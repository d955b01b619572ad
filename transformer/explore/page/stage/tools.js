"use strict";
// What can be done on the stage: add the outer products of a gradient one by one, change an entry, nudge a cell.

const EPSILONS = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6];

/** The outer products that have been added, once the slider has been moved; null before. */
function addingOf(view) {
  const {symbol, terms, head} = view.state;
  if (terms === null || !accumulates(symbol, view.result)) return null;
  const all = summands(view.result, head, symbol);
  const before = partialSum(view.result, head, symbol, Math.max(0, terms - 1));
  const sum = partialSum(view.result, head, symbol, terms);
  const last = terms > 0 ? all[terms - 1] : null;
  return {
    sum, count: terms, total: all.length, last, added: combine(sum, before, (x, y) => x - y),
    token: last && summandName(view, last), scale: view.commonScale ?? extent(matrixOf(view, symbol)),
  };
}

/** The token whose outer product it is; the sum of a weight's gradient goes over all sentences. */
function summandName(view, {item, head, index}) {
  const {rowsAre} = tensorsOf(view)[equationOf(view, view.state.symbol).find((part) => part.symbol).symbol];
  const chosen = item === view.state.item;
  const labels = chosen ? view.labels : labelsOfItem(view, item);
  const ofHead = head === undefined ? "" : ` of head ${head}`;
  return chosen ? `“${labels[rowsAre][index]}”${ofHead}` : `“${labels[rowsAre][index]}” of sentence ${item}`;
}

/** The rows of the operands that make the outer product added last; those of other sentences and heads are not shown. */
const addedRow = ({last}, part) => (last && last.item === state.item && last.head === undefined && !part.text ? [{row: last.index, col: null}] : []);

function addedGrid(view, adding, sizes) {
  const {symbol} = view.state;
  return grid(adding.added, {...gridOptions(view, symbol), ...sizes, name: `${symbol} (added)`, scale: adding.scale,
    caption: captionOf(view, symbol, adding.last ? `what ${adding.token} adds` : "nothing added yet")});
}

/** The slider that adds one token's outer product at a time. */
function addingSlider(view) {
  const {symbol, head, terms} = view.state;
  if (!accumulates(symbol, view.result)) return [];
  const all = summands(view.result, head, symbol);
  const slider = make("input");
  Object.assign(slider, {type: "range", min: 0, max: all.length, step: 1, value: terms ?? all.length, id: "adding"});
  slider.dataset.key = "adding";
  const said = make("output");
  const say = (count) => {
    const last = count > 0 ? `, the last one of ${summandName(view, all[count - 1])}` : "";
    said.textContent = `${count} of ${all.length} outer products${last}`;
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  say(terms ?? all.length);
  slider.addEventListener("input", () => {
    const count = Number(slider.value);
    state.terms = count;
    say(count);
    redrawSum(); // the rest stays: a redraw would take the slider out of the hand that drags it
  });
  const label = make("label", "", "Add one token at a time");
  label.htmlFor = slider.id;
  return [make("div", "adding", label, slider, said)];
}

/** Redraw the grids and the written-out cell alone. */
function redrawSum() {
  const view = currentView();
  const {symbol, cell} = view.state;
  const worked = cell && workedCell(view, symbol, cell.row, cell.col);
  document.querySelector("#stage .equation").replaceChildren(...equationElements(view, worked));
  if (worked) document.querySelector("#stage .worked").replaceWith(workedSum(view, worked));
}

/** For the chosen cell: change it, or nudge it. */
function stageTools(view) {
  const {symbol, cell} = view.state;
  const {editable} = kindOfPlace(view);
  if (!cell) return symbol in editable ? [make("p", "hint", "The entries of this tensor can be changed: choose one.")] : [];
  const tools = [...(symbol in editable ? [editForm(view)] : []), ...(canNudge(view) ? [nudgeTool(view)] : [])];
  return tools.length ? [make("div", "tools", ...tools)] : [];
}

function editForm(view) {
  const {symbol, cell: {row, col}, head} = view.state;
  const name = kindOfPlace(view).editable[symbol];
  const field = make("input");
  Object.assign(field, {type: "number", step: "any", required: true, name: "value"});
  field.value = String(Number(matrixOf(view, symbol).at(row, col).toPrecision(6)));
  field.dataset.key = "edit";
  const button = make("button", "small", "change");
  button.dataset.key = "edit:apply";
  const form = make("form", "", make("label", "", `Set this entry of ${name} to `, field), button);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setState({edit: {symbol: name, head, row, col, value: Number(field.value)}});
  });
  return form;
}

/** Any tensor that has a tile of its own and a gradient, and that gradient. */
function canNudge(view) {
  const tensor = tensorOf(view.state.symbol);
  return forwardSymbols(view).includes(tensor) && matrixOf(view, gradientOf(tensor)) !== null;
}

function nudgeTool(view) {
  const {symbol, cell: {row, col}, head, epsilon, nudge: done} = view.state;
  const tensor = tensorOf(symbol);
  const choice = menu("by ε =", "epsilon", EPSILONS.map((value) => [value, formatNumber(value, 1)]), epsilon,
    (value) => setState({epsilon: Number(value), nudge: null}));
  const button = make("button", "small", "Nudge ", ...withSubscripts(tensorsOf(view)[tensor].label), `[${row}, ${col}]`);
  button.type = "button";
  button.dataset.key = "nudge";
  button.addEventListener("click", () => {
    setState({nudge: {...nudge(view.result, {symbol: tensor, head, row, col}, epsilon), version: session.version}});
  });
  const tool = make("div", "tool", button, choice);
  if (done) tool.append(nudgeResult(view, done, tensor));
  return tool;
}

/** ΔL/ε beside the gradient, and how far they are apart. */
function nudgeResult(view, {difference, gradient}, tensor) {
  const most = Math.max(Math.abs(difference), Math.abs(gradient));
  const error = most === 0 ? 0 : Math.abs(difference - gradient) / most;
  const said = make("output", error > 1e-3 ? "nudged bad" : "nudged", `ΔL/ε = ${formatNumber(difference, 6)}, gradient `,
    ...withSubscripts(tensorsOf(view)[gradientOf(tensor)].label), ` = ${formatNumber(gradient, 6)}; `,
    `relative difference ${formatNumber(error, 2)}`);
  Object.assign(said.dataset, {difference, gradient});
  return said;
}
