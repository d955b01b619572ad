"use strict";
// Rules, as in rules.js, of what is computed along a row or along the rows: sums, means, softmax, the deviation of a norm.

/** softmax of a row: an exponential over the sum of the row's exponentials, which the aside writes out. */
function softmaxOf(symbol, label = symbol) {
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
        aside: {formula: `Σⱼ exp(${label}ᵢⱼ − maxⱼ ${label}ᵢⱼ)`, terms, sum: total},
        highlights,
      };
    },
  };
}

/** Σⱼ aᵢⱼ bᵢⱼ: one number for each row. */
const rowDotOf = (...symbols) => alongRow(symbols, () => []);
/** The same, divided by the number of columns: the mean of a row, or of a product of two tensors in a row. */
const rowMeanOf = (...symbols) => alongRow(symbols, (width) => [{label: `1/${width}`, value: 1 / width}]);

function alongRow(symbols, constantsOf) {
  return {
    cell(reader, i) {
      const width = reader.matrix(symbols[0]).cols;
      const factors = (j) => symbols.map((symbol) => reader.factor(symbol, i, j));
      return {
        terms: Array.from({length: width}, (_, j) => termOf(...factors(j), ...constantsOf(width))),
        highlights: symbols.map((symbol) => reader.highlight(symbol, i, null)),
      };
    },
  };
}

/** 1/√(variance + ε) of a row, the variance written out in the aside. */
function inverseDeviationOf(symbol, mean, epsilonOf) {
  return {
    cell(reader, i) {
      const width = reader.matrix(symbol).cols;
      const share = {label: `1/${width}`, value: 1 / width};
      const terms = Array.from({length: width}, (_, j) => {
        const distance = lessColumn(symbol, mean)(reader, i, j);
        return termOf(distance, distance, share);
      });
      terms.push(termOf({label: "ε", value: epsilonOf(reader)}));
      const sum = sumOf(terms);
      const root = {kind: "root", of: [{label: "variance + ε", value: sum}], value: 1 / Math.sqrt(sum)};
      return {
        terms: [termOf(root)],
        aside: {formula: "variance + ε", terms, sum},
        highlights: [reader.highlight(symbol, i, null), reader.highlight(mean, i, 0)],
      };
    },
  };
}

/** The sum of the rows, of all batch items: the gradient of a bias. Of two symbols, of their products cell by cell. */
function rowsOfBatch(...symbols) {
  return {
    equation: `Σ_rows ${symbols.join(" ∘ ")}`,
    cell: (reader, _, j) => ({
      terms: reader.ofBatch().flatMap((source) => Array.from({length: source.matrix(symbols[0]).rows},
        (__, i) => termOf(...symbols.map((symbol) => source.factor(symbol, i, j))))),
      highlights: symbols.map((symbol) => reader.highlight(symbol, null, j)),
    }),
  };
}
