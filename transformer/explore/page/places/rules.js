"use strict";
// How one cell of a tensor comes about, as a sum of products that can be written out: the rules of which the kinds of
// places (kinds.js) and BREAKAGES (faults/breakages.js) are made. Those along a row are in rules_of_rows.js.
//
// A rule is {cell(reader, i, j) -> {terms, sum?, note?, aside?, highlights}}. That of a matrix product has
// an equation, as the stage writes it (stage/equations.js). In it
//   a term is       {factors: [factor…], product}
//   a factor is     {symbol, i, j, value}, an entry of a tensor, with `head` or `item` if that is not the chosen one;
//                   {label, value}, a constant; or {kind, of: [factor…], value}: a "difference", an "exponential" of a
//                   difference, a "reciprocal", also that of a "root", a "negative logarithm", a "logarithm of 1 +", or a "function" with a
//                   `name`; factorText(factor, format) writes any of them
//   a highlight is  {symbol, row, col}: a line of the tensor where the other is null, else a cell
//   an aside is     {formula, terms, sum}: a sum that a factor stands for
// A sum that is given is the cell's value where no term makes it (a masked cell).

/** The tensors of one batch item, as one head sees them: its own, and those that the heads share. */
class Reader {
  /** `elsewhere`: the item, where it is not the chosen one. */
  constructor(result, head, {heads, shared} = result, elsewhere = {}) {
    Object.assign(this, {result, head, heads, shared, elsewhere});
    this.problem = result.problem;
  }

  matrix(symbol) {
    return this.heads[this.head][symbol] ?? this.shared[symbol] ?? null;
  }

  factor(symbol, i, j) {
    return {symbol: this.nameOf(symbol), i, j, value: this.matrix(symbol).at(i, j), ...this.elsewhere};
  }

  nameOf(symbol) {
    return kindOfResult(this.result).nameOf(symbol, this.problem);
  }

  /** A reader for every batch item, the chosen one first. */
  ofBatch() {
    const {result, head} = this;
    const others = result.items.map((_, item) => item).filter((item) => item !== result.item);
    return [result.item, ...others].map(
      (item) => new Reader(result, head, result.items[item], item === result.item ? {} : {item}));
  }

  highlight(symbol, row, col) {
    return {symbol: this.nameOf(symbol), row, col};
  }
}

const termOf = (...factors) => ({factors, product: factors.reduce((product, {value}) => product * value, 1)});
const sumOf = (terms) => terms.reduce((sum, {product}) => sum + product, 0);

/** "dRᵀ" is the tensor dR, transposed. */
function operandOf(text) {
  const transposed = text.endsWith("ᵀ");
  return {symbol: transposed ? text.slice(0, -1) : text, transposed};
}
const cellOf = ({transposed}, i, j) => (transposed ? [j, i] : [i, j]);

/** left right (+ bias), such as "Xᵀ" and "dQ". Over the batch, the products of all its items are added. */
function product(leftText, rightText, {bias = null, overBatch = false} = {}) {
  const [left, right] = [operandOf(leftText), operandOf(rightText)];
  const sourcesOf = (reader) => (overBatch ? reader.ofBatch() : [reader]);
  return {
    equation: `${leftText} · ${rightText}${bias ? ` + ${bias}` : ""}`,
    cell(reader, i, j) {
      const terms = [];
      for (const source of sourcesOf(reader)) {
        for (let k = 0; k < innerLength(source, left); k++) {
          terms.push(termOf(source.factor(left.symbol, ...cellOf(left, i, k)),
                            source.factor(right.symbol, ...cellOf(right, k, j))));
        }
      }
      const highlights = [reader.highlight(left.symbol, ...cellOf(left, i, null)),
                          reader.highlight(right.symbol, ...cellOf(right, null, j))];
      if (bias && reader.matrix(bias)) {
        terms.push(termOf(reader.factor(bias, 0, j)));
        highlights.push(reader.highlight(bias, 0, j));
      }
      return {terms, highlights};
    },
  };
}

/** How many products a cell of the matrix product adds up in one batch item. */
const innerLength = (reader, {symbol, transposed}) => reader.matrix(symbol)[transposed ? "rows" : "cols"];

// The factors of `each`: functions of the reader and the cell, with the symbols of the tensors that they read.
const entry = (symbol) => Object.assign((reader, i, j) => reader.factor(symbol, i, j), {symbols: [symbol]});
const constant = (label, value) => Object.assign(({problem}) => ({label, value: value(problem)}), {symbols: []});
/** An entry of a column, one for each row of the cell's tensor; or of a row, one for each column. */
const ofColumn = (symbol) => Object.assign((reader, i) => reader.factor(symbol, i, 0), {symbols: [symbol]});
const ofRow = (symbol) => Object.assign((reader, _, j) => reader.factor(symbol, 0, j), {symbols: [symbol]});
const MINUS = constant("−1", () => -1);
/** symbol − column, where the column has one entry for the row. */
const lessColumn = (symbol, column) => Object.assign((reader, i, j) => {
  const of = [reader.factor(symbol, i, j), reader.factor(column, i, 0)];
  return {kind: "difference", of, value: of[0].value - of[1].value};
}, {symbols: [symbol, column]});
/** Cell by cell, one product of these factors. */
function each(...factors) {
  const symbols = factors.flatMap((factor) => factor.symbols);
  return {
    cell: (reader, i, j) => ({
      terms: [termOf(...factors.map((factor) => factor(reader, i, j)))],
      highlights: symbols.map((symbol) => {
        const {rows, cols} = reader.matrix(symbol);
        return reader.highlight(symbol, rows === 1 ? 0 : i, cols === 1 ? 0 : j);
      }),
    }),
  };
}

/** The sum of such products, each a list of factors; one whose tensor this place has not, as a bias, is left out. */
function added(...products) {
  return {
    cell(reader, i, j) {
      const there = products.filter((factors) => factors.every(({symbols}) => symbols.every((symbol) => reader.matrix(symbol))));
      const cells = there.map((factors) => each(...factors).cell(reader, i, j));
      return {terms: cells.flatMap(({terms}) => terms), highlights: cells.flatMap(({highlights}) => highlights)};
    },
  };
}

/** The cell of another tensor where the mask allows, `otherwise` where it does not. */
function unlessMasked(symbol, otherwise, note) {
  const copy = each(entry(symbol));
  return {
    cell(reader, i, j) {
      const {mask} = reader.heads[reader.head];
      return mask && !mask.at(i, j) ? {terms: [], sum: otherwise, note, highlights: []} : copy.cell(reader, i, j);
    },
  };
}

/** The cell of a wide matrix that lies in the columns of one head, and the other way round. */
const joinHeads = (symbol) => ({
  cell(reader, i, j) {
    const width = reader.matrix(symbol).cols;
    const [head, col] = [Math.floor(j / width), j % width];
    const factor = {...new Reader(reader.result, head).factor(symbol, i, col), head};
    return {terms: [termOf(factor)], highlights: [{...reader.highlight(symbol, i, col), head}]};
  },
});
const ownColumns = (symbol) => ({
  cell(reader, i, j) {
    const col = reader.head * (reader.matrix(symbol).cols / reader.problem.numHeads) + j;
    return {terms: [termOf(reader.factor(symbol, i, col))], highlights: [reader.highlight(symbol, i, col)]};
  },
});

/** The sum, over the heads, of these gradients of one input. */
function pathsOfHeads(pathsOf) {
  return {
    cell(reader, i, j) {
      const symbols = pathsOf(reader.problem);
      const ofHeads = reader.heads.map((_, head) => new Reader(reader.result, head));
      return {
        terms: symbols.flatMap((symbol) => ofHeads.map((of, head) => termOf({...of.factor(symbol, i, j), head}))),
        highlights: symbols.map((symbol) => reader.highlight(symbol, i, j)),
      };
    },
  };
}

/** What is not computed here: inputs, parameters, and the gradient that arrives. */
const given = (symbol, note) => ({
  cell: (reader, i, j) => ({terms: [termOf(reader.factor(symbol, i, j))], note, highlights: []}),
});

/** A factor as text; `format` writes a number. */
function factorText(factor, format) {
  if (!factor.kind) return format(factor.value);
  const [first, second] = factor.of.map((inner) => format(inner.value));
  if (factor.kind === "difference") return `(${first} − ${second})`;
  if (factor.kind === "function") return `${factor.name}(${first})`;
  return {exponential: `exp(${first} − ${second})`, reciprocal: `1/${first}`, root: `1/√${first}`,
    "negative logarithm": `−ln ${first}`, "logarithm of 1 +": `ln(1 + ${first})`}[factor.kind];
}

/** The weight and the bias of a linear layer y = x w + b. */
function linearParameters(layer, w, b, x, y, axes) {
  const [W, B] = [w, b].map((name) => name.replace(/\d/, (digit) => "₀₁₂"[digit])), next = `${y} = ${x} ${W} + ${B}`;
  return {
    [w]: {label: W, name: `weight of the ${layer}`, axes, rule: given(w, A_PARAMETER), next,
      backward: `d${W} = ${x}ᵀ d${y}`, gradientRule: product(`${x}ᵀ`, `d${y}`, {overBatch: true})},
    [b]: {label: B, name: `bias of the ${layer}`, axes: ["one", axes[1]], rule: given(b, A_PARAMETER), next,
      backward: `d${B} = the sum of the rows of d${y}`, gradientRule: rowsOfBatch(`d${y}`)},
  };
}
