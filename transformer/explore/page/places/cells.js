"use strict";
// What the page says of a tensor of a result: one cell written out, and its gradient token by token.
//
// How to use:
//   tensorAt(result, head, symbol) -> the Matrix, of the head or shared by the heads; null if this attention has none
//   explainCell(result, head, symbol, i, j) -> {symbol, formula, terms, sum, note, aside, highlights}: see rules.js
//   accumulates(symbol, result) -> whether it is a gradient that is a sum of outer products, one for each token
//   summands(result, head, symbol) -> [{item, head, index, left, right}]: the token, and the two vectors of its outer product
//   partialSum(result, head, symbol, n) -> the Matrix of the first n of them

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

function accumulates(symbol, result) {
  const {left} = definitionOf(symbol, result).rule;
  return left !== undefined && left.transposed;
}

/** aᵀ b is the sum of aₜᵀ bₜ, the rows of every token t: those of the chosen batch item and head come first. */
function summands(result, head, symbol) {
  const {left, right, sourcesOf} = definitionOf(symbol, result).rule;
  return sourcesOf(new Reader(result, head)).flatMap((source) => {
    const [a, b] = [source.matrix(left.symbol), source.matrix(right.symbol)];
    return Array.from({length: a.rows}, (_, index) => (
      {item: result.item, ...source.elsewhere, index, left: a.row(index), right: b.row(index)}));
  });
}

function partialSum(result, head, symbol, n) {
  const {rows, cols} = tensorAt(result, head, symbol);
  const added = summands(result, head, symbol).slice(0, n);
  return makeMatrix(rows, cols, (i, j) => added.reduce((sum, {left, right}) => sum + left[i] * right[j], 0));
}
