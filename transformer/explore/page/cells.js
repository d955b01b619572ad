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
function definitionOf(symbol, {broken, problem}) {
  const replaced = broken ? broken.replaces(problem)[symbol] : undefined;
  if (replaced) return replaced;
  const {rule, forward, backward} = factsOf(symbol, problem);
  return {rule, formula: /^(d.*|D|G)$/.test(symbol) ? backward : forward};
}

function explainCell(result, head, symbol, i, j) {
  const {rule, formula} = definitionOf(symbol, result);
  const {terms, sum, note = null, aside = null, highlights} = rule.cell(new Reader(result, head), i, j);
  if (isEdited(result, head, symbol, i, j)) terms.push(termOf({label: "your edit", value: result.edit.offset}));
  return {symbol, formula: spell(formula, result), terms, sum: sum ?? sumOf(terms), note, aside, highlights};
}

/** Whether this cell is one of Q, K or V with the edit added to it. (G is given: there the edit is the value.) */
function isEdited({edit, problem}, head, symbol, i, j) {
  if (edit === null || symbol === "G") return false;
  const edited = symbol === edit.symbol && headsSharing(problem, symbol, head).includes(edit.head);
  return edited && i === edit.row && j === edit.col;
}

/** A formula in the terms of this attention: X for M in self-attention, and no bias that is not there. */
function spell(formula, result) {
  const written = typeof formula === "function" ? formula(result.problem) : formula;
  const named = result.problem.selfAttention ? written.replace(/M/g, "X") : written;
  const scaled = result.problem.usualScale ? named : named.replace("/√d_k", ` · ${scaleText(result.problem)}`);
  return scaled.replace(/ \+ b_([QKVO])/g, (bias, letter) => (tensorAt(result, 0, `b${letter}`) ? bias : ""));
}

/** The factor of the scores that is none of 1/√d_k. */
const scaleText = ({scale}) => String(Number(scale.toPrecision(4)));

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
