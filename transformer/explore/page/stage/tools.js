"use strict";
// What can be done with the chosen cell: change it, or nudge it.

const EPSILONS = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6];

function stageTools(view) {
  const tools = [...(view.state.symbol in kindOfPlace(view).editable ? [editForm(view)] : []), ...(canNudge(view) ? [nudgeTool(view)] : [])];
  return tools.length ? [build("div", {class: "tools"}, ...tools)] : [];
}

function editForm(view) {
  const {symbol, cell: {row, col}, head} = view.state;
  const name = kindOfPlace(view).editable[symbol];
  const field = build("input", {type: "number", step: "any", required: true, "data-key": "edit",
    value: Number(matrixOf(view, symbol).at(row, col).toPrecision(6))});
  return build("form", {onsubmit: (event) => {
    event.preventDefault();
    setState({edit: {symbol: name, head, row, col, value: Number(field.value)}});
  }}, build("label", {}, `Set this entry of ${name} to `, field), build("button", {class: "small", "data-key": "edit:apply"}, "change"));
}

/** Any tensor that has a tile of its own and a gradient, and that gradient. */
function canNudge(view) {
  const tensor = tensorOf(view.state.symbol);
  return forwardSymbols(view).includes(tensor) && matrixOf(view, gradientOf(tensor)) !== null;
}

function nudgeTool(view) {
  const {symbol, cell: {row, col}, head, epsilon, nudge: done} = view.state;
  const tensor = tensorOf(symbol);
  const measure = async () => {
    const found = await settled(() => nudge(view.result, {symbol: tensor, head, row, col}, epsilon));
    setState({nudge: {...found, version: session.version}});
  };
  return build("div", {class: "tool"},
    build("button", {type: "button", class: "small", "data-key": "nudge", onclick: measure}, "Nudge ", ...withSubscripts(tensorsOf(view)[tensor].label), `[${row}, ${col}]`),
    menu("by ε =", "epsilon", EPSILONS.map((value) => [value, formatNumber(value, 1)]), epsilon, (value) => setState({epsilon: Number(value), nudge: null})),
    done && nudgeResult(view, done, tensor));
}

/** ΔL/ε beside the gradient, and how far they are apart. */
function nudgeResult(view, {difference, gradient}, tensor) {
  const most = Math.max(Math.abs(difference), Math.abs(gradient));
  const error = most === 0 ? 0 : Math.abs(difference - gradient) / most;
  return build("output", {class: error > 1e-3 ? "nudged bad" : "nudged", "data-difference": difference, "data-gradient": gradient},
    `ΔL/ε = ${formatNumber(difference, 6)}, gradient `, ...withSubscripts(tensorsOf(view)[gradientOf(tensor)].label),
    ` = ${formatNumber(gradient, 6)}; relative difference ${formatNumber(error, 2)}`);
}
