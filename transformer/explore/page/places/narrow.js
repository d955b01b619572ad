"use strict";
// What the page shows of a large vocabulary: in an embedding the rows of the tokens that occur; at the output the columns of
// the tokens that matter (the targets, what the model would write, the largest gradients), and one for all others together.
//
// How to use:
//   narrowed(result) -> the Result so, with
//       columns      the ids that are shown, ascending; shared.shown has the places in it of shared.ids
//       others       how many tokens the last column stands for; 0: there is none
//       full         the Result as it was
//     a Result without a large vocabulary as it is
//
// Of the others P, dZ, dW and db are summed; their Z is ln Σ exp Z, with which one token would have their P. W and b have no
// such column.

const LARGE_VOCABULARY = 150; // tokens: more have no room on the stage
const MANY_TOKENS = 24; //      that are shown, or more where a long sentence has more that matter

function narrowed(result) {
  const {kind, shared: {W}, items} = result, isOutput = kind === "output";
  if (!(isOutput || kind === "embedding") || Math.max(W.rows, W.cols) <= LARGE_VOCABULARY) return result;
  const columns = isOutput ? tokensThatMatter(result.shared) : [...new Set(items.flatMap(({shared: {ids}}) => ids))].sort((a, b) => a - b);
  const cut = (record) => ({
    ...record, ...(isOutput ? cutColumns(record, columns) : {W: rowsOf(record.W, columns), dW: rowsOf(record.dW, columns)}),
    shown: record.ids.map((id) => (columns.includes(id) ? columns.indexOf(id) : columns.length)),
  });
  return {...result, full: result, columns, others: isOutput ? W.cols - columns.length : 0, shared: cut(result.shared),
    items: items.map((place) => ({...place, shared: cut(place.shared)}))};
}

function tokensThatMatter({ids, P, dZ}) {
  const weight = new Float64Array(P.cols);
  dZ.data.forEach((gradient, n) => { weight[n % P.cols] = Math.max(weight[n % P.cols], Math.abs(gradient)); });
  ids.forEach((id, i) => { weight[id] = weight[P.row(i).indexOf(P.row(i).reduce((most, p) => Math.max(most, p)))] = 2; }); // no gradient is larger than 1
  const count = Math.max(MANY_TOKENS, weight.filter((size) => size === 2).length);
  return [...weight.keys()].sort((a, b) => weight[b] - weight[a]).slice(0, count).sort((a, b) => a - b);
}

function cutColumns(record, columns) {
  const isOther = new Uint8Array(record.W.cols).fill(1);
  for (const id of columns) isOther[id] = 0;
  const cut = (symbol, together) => record[symbol] && makeMatrix(record[symbol].rows, columns.length + (together ? 1 : 0), (i, j) => (
    j < columns.length ? record[symbol].at(i, columns[j]) : together(record[symbol].row(i), isOther)));
  return {W: cut("W"), b: cut("b"), Z: cut("Z", logOfExponentials), P: cut("P", sumWhere), dZ: cut("dZ", sumWhere), dW: cut("dW", sumWhere), db: cut("db", sumWhere)};
}

function sumWhere(row, isOther) {
  let sum = 0;
  for (let n = 0; n < row.length; n++) sum += isOther[n] * row[n];
  return sum;
}

function logOfExponentials(row, isOther) {
  const top = row.reduce((most, x, n) => (isOther[n] ? Math.max(most, x) : most), -Infinity);
  return top + Math.log(sumWhere(row.map((x) => Math.exp(Math.min(x - top, 0))), isOther));
}

/** Whether the number `id` along an axis of the full tensor is what the page shows at `index`. */
const isShownAt = ({columns}, axis, id, index) => (!columns || axis !== "vocabulary" ? id === index
  : index < columns.length ? id === columns[index] : !columns.includes(id));
