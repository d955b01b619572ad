"use strict";
// What the page says of a tensor of a result: one cell written out.
//
// How to use:
//   tensorAt(result, head, symbol) -> the Matrix, of the head or shared by the heads; null if this attention has none
//   explainCell(result, head, symbol, i, j) -> {symbol, formula, terms, sum, note, aside, highlights}: see rules.js

function tensorAt(result, head, symbol) {
  // The gradient that a bias would have is that of no tensor, if there is no bias.
  if (/^db/.test(symbol) && tensorAt(result, head, symbol.slice(1)) === null) return null;
  return result.heads[head][symbol] ?? result.shared[symbol] ?? null;
}

/** The rule by which the result got this tensor, and its formula: those of the breakage, if it replaces them. */
function definitionOf(symbol, result) {
  const replaced = kindOfResult(result).replaced(result)[symbol];
  if (replaced) return replaced;
  const {rule, forward, backward} = factsOf(symbol, result);
  return {rule, formula: isGradient(symbol) ? backward : forward};
}

function explainCell(result, head, symbol, i, j) {
  const {rule, formula} = definitionOf(symbol, result);
  const {terms, sum, note = null, aside = null, highlights} = rule.cell(new Reader(result, head), i, j);
  if (isEdited(result, head, symbol, i, j)) terms.push(termOf({label: "your edit", value: result.edit.offset}));
  return {symbol, formula: spelled(formula, result), terms, sum: sum ?? sumOf(terms), note, aside, highlights};
}

/** Whether this cell is one of Q, K or V with the edit added to it. (dY is given: there the edit is the value.) */
function isEdited({edit}, head, symbol, i, j) {
  if (edit === null || symbol === "dY") return false;
  return symbol === edit.symbol && head === edit.head && i === edit.row && j === edit.col;
}

/** A formula, or the function that gives it, in the terms of this place. */
const spelled = (formula, result) => (
  kindOfResult(result).spell(typeof formula === "function" ? formula(result.problem) : formula, result));

