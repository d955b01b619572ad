"use strict";
// What stands on the stage: the equation of each step, with its operands.
//
// How to use:
//   equationOf(view, symbol) -> [{text} or {symbol, matrix, name, transposed, head, note}], left of the equals sign
//   formulasOf(view, symbol) -> {forward, backward, replaced}, as text; replaced: "break it" has changed the formula
//   workedCell(view, symbol, row, col) -> what explainCell says
//
// An equation of a kind (places/kinds.js) is a text of words. A symbol is drawn as a grid ("ᵀ" after it: its transpose is
// meant, but it is drawn as it is, tokens from top to bottom); "O*" is the O of every head, "+dXq" is summed over the
// heads; the rest is written as it stands.

/** A text without the tensors that are not shown. */
const asShown = (view, text) => kindOfPlace(view).asShown(view, text);

/** The symbol whose rule makes a tensor: without a mask dS comes straight from dA. */
const ruleSymbol = (view, symbol) => (isGradient(symbol) ? passedOn(view, symbol) : symbol);

/** The breakage's own rule for a tensor, or undefined. */
const brokenRule = (view, symbol) => kindOfPlace(view).replaced(view.result)[ruleSymbol(view, symbol)];

function formulasOf(view, symbol) {
  const {result} = view;
  const {label, name, forward} = factsOf(ruleSymbol(view, symbol), result);
  const {backward = ""} = factsOf(passedOn(view, symbol), result);
  const broken = brokenRule(view, symbol);
  const write = (formula) => {
    const written = asShown(view, spelled(formula, result));
    return view.state.scaling ? written : written.replace("/√d_k", "");
  };
  const step = write(forward);
  const made = isGradient(symbol) || step.includes("=") ? step : `${label}, the ${name}`;
  return {forward: made, backward: write(broken ? broken.formula : backward), replaced: Boolean(broken)};
}

function equationText(view, symbol) {
  const {equations, brokenEquations} = kindOfPlace(view);
  const made = ruleSymbol(view, symbol), broken = brokenRule(view, symbol);
  const {rule} = broken ?? factsOf(made, view.result);
  const equation = rule.equation ?? (broken ? brokenEquations[view.result.broken.key] : equations)[made] ?? "";
  return typeof equation === "function" ? equation(view) : equation;
}

function equationOf(view, symbol) {
  const parts = equationText(view, symbol).split(" ").filter(Boolean).flatMap((word) => partsOf(view, word));
  // A bias that the model has not leaves its + behind.
  return parts.at(-1)?.text === "+" ? parts.slice(0, -1) : parts;
}

function partsOf(view, word) {
  if (word === "O*") {
    return view.result.heads.map(({O}, h) => ({symbol: "O", matrix: O, name: `O (head ${h + 1})`, head: h, note: `head ${h + 1}`}));
  }
  if (word.length > 1 && word.startsWith("+")) {
    const symbol = word.slice(1);
    return [{symbol, matrix: view.result.shared[symbol], name: `${symbol} (all heads)`, note: "all heads"}];
  }
  const transposed = word.endsWith("ᵀ");
  const named = transposed ? word.slice(0, -1) : word;
  const symbol = shownSymbol(view, kindOfPlace(view).nameOf(named, view.result.problem));
  if (!Object.hasOwn(tensorsOf(view), symbol)) return [{text: word.replace(/_(?=rows|keys|heads|of|by|token|at|the|target)/g, " ")}];
  const matrix = matrixOf(view, symbol);
  return matrix ? [{symbol, transposed, matrix, name: symbol}] : [];
}

function workedCell(view, symbol, row, col) {
  const worked = explainCell(view.result, view.state.head, ruleSymbol(view, symbol), row, col);
  const highlights = worked.highlights.map((part) => ({...part, symbol: shownSymbol(view, part.symbol)}));
  return {...worked, highlights, formula: asShown(view, worked.formula)};
}
