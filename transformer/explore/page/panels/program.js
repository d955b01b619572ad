"use strict";
// The view of the program: the lines of the written-out step (minigrad.inspect.program) that belong to this place.
//
// The name of a line is that of the value which it makes; the last line of a module has that of the module, too.

/** By kind of place: the tensors that the line of a name makes; "." is the place itself, "" its last line of the pass. */
const PROGRAM_LINES = {
  attention: {
    query: "WQ bQ Q dWQ dbQ dXq", key: "WK bK K dWK dbK dXk", value: "WV bV V dWV dbV dXv", output: "WO bO Y dWO dbO dC",
    scores: "S", masked: "Sm", weights: "A", context: "O", ".": "C",
    grad_value: "dV", grad_kept: "dA", grad_scores: "dSm dS", grad_query: "dQ", grad_key: "dK", "": "dX dM",
  },
  feed_forward: {inner: "W1 b1 H dW1 db1 dX", ".": "F dH", outer: "W2 b2 Y dW2 db2 dF"},
  norm: {mean: "mu", rstd: "rs", normalized: "Xh", grad_normalized: "dXh", ".": "w b Y dw db dX"},
  residual: {".": "Y dY dU"},
  embedding: {table: "W E dW", ".": "Y dE"},
  output: {losses: "L", loss: "loss", d_loss: "dloss", d_linear: "dZ", d_weight: "dW", d_bias: "db", d_out: "dX", projection: "W b Z dW db dX"},
};

/** The place that a module is a part of. */
function placeOfModule(module) {
  const around = page.places.map(({path}) => path).filter((path) => `${module}.`.startsWith(`${path}.`));
  return around.sort((a, b) => b.length - a.length)[0] ?? "output";
}

/** The place's lines of both passes: [{text, names}]. */
function programLines({path}) {
  const own = page.model.program.filter(([modules]) => modules.some((module) => placeOfModule(module) === path));
  const last = (modules) => modules[0].split(".").at(-1);
  return [false, true].map((backward) => own.filter((section) => section[1] === backward).flatMap(([modules,, lines]) => lines.map((text, n) => (
    {text, names: [/^ +([a-z_]+?)(_\d+)? = /.exec(text)?.[1], n === lines.length - 1 ? last(modules) : null]}))));
}

/** The line that makes this tensor, if one does. */
function lineOfTensor(lines, {place: {path, kind}, result}, symbol) {
  const made = symbol === "dX" && result.problem.selfAttention === false ? "dXq" : symbol;
  const names = Object.entries(PROGRAM_LINES[kind]).filter(([, symbols]) => symbols.split(" ").includes(made)).map(([name]) => name);
  const find = (name) => (name === "" ? lines.at(-1) : lines.findLast(({names: own}) => own.includes(name === "." ? path.split(".").at(-1) : name)));
  return names.map(find).find(Boolean);
}

function renderProgram(container, view) {
  if (!page.model.program) {
    container.append(build("p", {}, "This page has no room for the program: python -m transformer write-out writes it."));
    return;
  }
  const passes = programLines(view.place), {symbol} = view.state;
  const chosen = lineOfTensor(passes[Number(isGradient(symbol))], view, symbol);
  const lineOf = (line) => build("code", {"aria-current": line === chosen && "true"}, line.text);
  container.append(build("p", {class: "note"}, "The step as NumPy computes it. The shapes are those of the first sentence of the page.",
    chosen ? "" : ` No line makes ${symbol} alone.`));
  for (const [n, lines] of passes.entries()) container.append(build("h3", {}, ["Forward", "Backward"][n]), build("pre", {class: "program"}, ...lines.map(lineOf)));
  requestAnimationFrame(() => container.querySelector("[aria-current]")?.scrollIntoView({block: "nearest"}));
}

PANELS.push({id: "program", title: "Program", render: renderProgram});
