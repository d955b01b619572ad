"use strict";
// What can be done on the stage: change an entry, nudge a cell.

const EPSILONS = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6];

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
