"use strict";
// The view of the program: the lines of the written-out step (minigrad.inspect.program) that belong to this place.

/** By kind of place, the tensors that a line makes: the one of a variable, or the last of a module whose path ends so. */
const PROGRAM_LINES = {
  attention: {
    query: "WQ bQ Q dWQ dbQ dXq", key: "WK bK K dWK dbK dXk", value: "WV bV V dWV dbV dXv", output: "WO bO Y dWO dbO dC",
    scores: "S", masked: "Sm", weights: "A", context: "O", attention: "C",
    grad_value: "dV", grad_kept: "dA", grad_scores: "dSm dS", grad_query: "dQ", grad_key: "dK", "": "dX dM",
  },
  feed_forward: {inner: "W1 b1 H dW1 db1 dX", feed_forward: "F dH", outer: "W2 b2 Y dW2 db2 dF"},
  norm: {mean: "mu", rstd: "rs", normalized: "Xh", grad_normalized: "dXh", norm: "w b Y dw db dX"},
  residual: {residual: "Y dY dU dX"},
  embedding: {table: "W E dW", embedding: "Y dE"},
  output: {losses: "L", loss: "loss", d_loss: "dloss", d_linear: "dZ", d_weight: "dW", d_bias: "db", d_out: "dX", linear: "Z", projection: "W b dW db dX"},
};

/** The line that makes this tensor, among the sections of its pass. */
function lineOfTensor(sections, {place, result}, symbol) {
  const made = symbol === "dX" && result.problem.selfAttention === false ? "dXq" : symbol;
  const names = Object.entries(PROGRAM_LINES[place.kind]).filter(([, symbols]) => symbols.split(" ").includes(made));
  return names.map(([name]) => sections.flatMap(([modules,, lines]) => lines.filter((line, n) => (
    new RegExp(`^ *${name}(_\\d+)? =`).test(line) || (n === lines.length - 1 && modules[0].endsWith(name))))).at(-1)).find(Boolean);
}

function renderProgram(container, view) {
  const {place: {path}, state: {symbol}} = view, {program} = page.model;
  const own = new RegExp(path === "output" ? "^(projection|Transformer)?$" : `^${path}(\\.(?!norm$).*)?$`);
  const passes = [false, true].map((backward) => program.filter((section) => section[1] === backward && section[0].some((module) => own.test(module))));
  const chosen = lineOfTensor(passes[Number(isGradient(symbol))], view, symbol);
  const shown = (sections) => build("pre", {class: "program"}, ...sections.flatMap(([,, lines]) => lines).map((line) => (
    build("code", {"aria-current": line === chosen && "true"}, line))));
  container.append("The step in NumPy; shapes are those of the page's first sentence.",
    build("h3", {}, "Forward"), shown(passes[0]), build("h3", {}, "Backward"), shown(passes[1]));
  requestAnimationFrame(() => container.querySelector("[aria-current]")?.scrollIntoView({block: "nearest"}));
}

PANELS.push({id: "program", title: "Program", render: renderProgram});
