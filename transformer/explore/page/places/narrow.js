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
const MANY_TOKENS = 30; //      that are shown

function narrowed(result) {
  const {kind, shared: {W, dZ}, items} = result, isOutput = kind === "output";
  if (!(isOutput || kind === "embedding") || Math.max(W.rows, W.cols) <= LARGE_VOCABULARY) return result;
  const ids = isOutput ? items[result.item].shared.ids.flatMap((_, i) => largestIn(dZ.row(i), Math.max(2, MANY_TOKENS / dZ.rows))) : items.flatMap(({shared}) => shared.ids);
  const columns = [...new Set(ids)].sort((a, b) => a - b);
  const cut = (record) => ({
    ...record, ...(isOutput ? cutColumns(record, columns) : {W: rowsOf(record.W, columns), dW: rowsOf(record.dW, columns)}),
    shown: record.ids.map((id) => (columns.includes(id) ? columns.indexOf(id) : columns.length)),
  });
  return {...result, full: result, columns, others: isOutput ? W.cols - columns.length : 0, shared: cut(result.shared),
    items: items.map((place) => ({...place, shared: cut(place.shared)}))};
}

/** Where the numbers are largest. In a row of dZ the target is first: what it gains is all that the others lose. */
function largestIn(row, count) {
  const sizes = row.map(Math.abs), least = sizes.toSorted().at(-count);
  return [...row.keys()].filter((n) => !(sizes[n] < least)).sort((a, b) => sizes[b] - sizes[a]).slice(0, count);
}

/** How the others are taken together. */
const TOGETHER = {W: null, b: null, Z: logOfExponentials, P: sumWhere, dZ: sumWhere, dW: sumWhere, db: sumWhere};

function cutColumns(record, columns) {
  const isOther = new Uint8Array(record.W.cols).fill(1);
  for (const id of columns) isOther[id] = 0;
  return Object.fromEntries(Object.entries(TOGETHER).map(([symbol, together]) => {
    const matrix = record[symbol];
    return [symbol, matrix && makeMatrix(matrix.rows, columns.length + (together ? 1 : 0), (i, j) => (
      j < columns.length ? matrix.at(i, columns[j]) : together(matrix.row(i), isOther)))];
  }));
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
