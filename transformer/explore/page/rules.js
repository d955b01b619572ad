"use strict";
// How one cell of a tensor comes about, as a sum of products that can be written out: the rules of which TENSORS
// (tensors.js) and BREAKAGES (breakages.js) are made.
//
// A rule is {cell(reader, i, j) -> {terms, sum?, note?, aside?, highlights}}, and that of a matrix product has
// {left, right, sourcesOf} too. In it
//   a term is       {factors: [factor…], product}
//   a factor is     {symbol, i, j, value}, an entry of a tensor, with `head` or `item` if that is not the chosen one;
//                   {label, value}, a constant; or {kind, of: [factor…], value}: a "difference", an "exponential" of a
//                   difference or a "reciprocal"; factorText(factor, format) writes any of them
//   a highlight is  {symbol, row, col}: a line of the tensor where the other is null, else a cell
//   an aside is     {formula, terms, sum}: a sum that a factor stands for
// A sum that is given is the cell's value where no term makes it (a masked cell).

/** The tensors of one batch item, as one head sees them: its own, and those that the heads share. */
class Reader {
  /** `elsewhere`: the item or the head, where it is not the chosen one. */
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

  /** In self-attention M is X, and is called so. */
  nameOf(symbol) {
    return symbol === "M" && this.problem.selfAttention ? "X" : symbol;
  }

  /** A reader for every batch item, the chosen one first. */
  ofBatch() {
    const {result, head} = this;
    const others = result.items.map((_, item) => item).filter((item) => item !== result.item);
    return [result.item, ...others].map(
      (item) => new Reader(result, head, result.items[item], item === result.item ? {} : {item}));
  }

  /** A reader for every head that has this tensor in common with the chosen one, which comes first. */
  ofSharing(symbol) {
    const others = headsSharing(this.problem, symbol, this.head).filter((head) => head !== this.head);
    return [this, ...others.map((head) => new Reader(this.result, head, this, {head}))];
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

/**
 * left right (+ bias), such as "Xᵀ" and "dQ". Over the batch, the products of all its items are added; where heads share
 * the tensor that is named, those of these heads are.
 */
function product(leftText, rightText, {bias = null, overBatch = false, shared = null} = {}) {
  const [left, right] = [operandOf(leftText), operandOf(rightText)];
  const sourcesOf = (reader) => (overBatch ? reader.ofBatch() : reader.ofSharing(shared));
  return {
    left, right, sourcesOf,
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
/** symbol − column, where the column has one entry for the row. */
const lessColumn = (symbol, column) => Object.assign((reader, i, j) => {
  const of = [reader.factor(symbol, i, j), reader.factor(column, i, 0)];
  return {kind: "difference", of, value: of[0].value - of[1].value};
}, {symbols: [symbol, column]});
/** What dropout multiplies a weight by. */
const keptShare = Object.assign((reader, i, j) => {
  const {kept} = reader.heads[reader.head];
  if (!kept) return {label: "no dropout", value: 1};
  return kept.at(i, j) ? {label: "1/(1 − p)", value: 1 / (1 - reader.problem.p)} : {label: "dropped", value: 0};
}, {symbols: []});

/** Cell by cell, one product of these factors. */
function each(...factors) {
  const symbols = factors.flatMap((factor) => factor.symbols);
  return {
    cell: (reader, i, j) => ({
      terms: [termOf(...factors.map((factor) => factor(reader, i, j)))],
      highlights: symbols.map((symbol) => reader.highlight(symbol, i, reader.matrix(symbol).cols === 1 ? 0 : j)),
    }),
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

/** softmax of a row: an exponential over the sum of the row's exponentials, which the aside writes out. */
function softmaxOf(symbol) {
  return {
    cell(reader, i, j) {
      const row = reader.matrix(symbol).row(i);
      const top = Math.max(...row);
      const highlights = [reader.highlight(symbol, i, null)];
      if (top === -Infinity) {
        return {terms: [], sum: 0, note: "This query may attend to nothing: all its weights are 0.", highlights};
      }
      const exponential = (k) => {
        const of = [reader.factor(symbol, i, k), {label: "the largest of the row", value: top}];
        return {kind: "exponential", of, value: Math.exp(row[k] - top)};
      };
      const terms = Array.from(row, (_, k) => termOf(exponential(k)));
      const total = sumOf(terms);
      const of = [{label: "the sum of the row's exponentials", value: total}];
      const share = {kind: "reciprocal", of, value: 1 / total};
      return {
        terms: [termOf(exponential(j), share)],
        aside: {formula: "Σⱼ exp(S̄ᵢⱼ − maxⱼ S̄ᵢⱼ)", terms, sum: total},
        highlights,
      };
    },
  };
}

/** Σⱼ aᵢⱼ bᵢⱼ: one number for each row. */
function rowDotOf(a, b) {
  return {
    cell: (reader, i) => ({
      terms: Array.from(reader.matrix(a).row(i), (_, j) => termOf(reader.factor(a, i, j), reader.factor(b, i, j))),
      highlights: [a, b].map((symbol) => reader.highlight(symbol, i, null)),
    }),
  };
}

/** The sum of the rows, of all batch items: the gradient of a bias. */
function rowsOfBatch(symbol) {
  return {
    cell: (reader, _, j) => ({
      terms: reader.ofBatch().flatMap((source) => Array.from(
        {length: source.matrix(symbol).rows}, (__, i) => termOf(source.factor(symbol, i, j)))),
      highlights: [reader.highlight(symbol, null, j)],
    }),
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
  return factor.kind === "exponential" ? `exp(${first} − ${second})` : `1/${first}`;
}
