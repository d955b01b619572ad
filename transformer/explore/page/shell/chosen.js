"use strict";
// One row and one cell stay chosen through all steps: each axis remembers the index that was chosen along it, and the
// cell of another tensor is where its own two axes have theirs.
//
// How to use:
//   rememberCell(view, symbol, cell)   the reader has chosen it
//   rememberRow(view, row)             likewise, a query
//   chosenCell(view, symbol) -> {row, col}: the cell of that tensor at what is remembered; where nothing is, its largest entry
//   chosenRow(view) -> the chosen query

const remembered = new Map(); // by axis

/** The keys of a cross-attention are the tokens of the encoder, and stay with those; a self-attention has keys of its own. */
function axisName(view, axis) {
  if (axis === "query") return `token of the ${view.place.side}`;
  if (axis !== "key") return axis;
  const {queries, keys} = view.attention;
  return queries === keys ? `key of the ${view.place.side}` : "token of the encoder";
}

function rememberCell(view, symbol, {row, col}) {
  const {rowsAre, colsAre} = tensorsOf(view)[symbol];
  remembered.set(axisName(view, rowsAre), row);
  remembered.set(axisName(view, colsAre), col);
}

const rememberRow = (view, row) => remembered.set(axisName(view, "query"), row);

/** The chosen query; before any is, the one that the loss blames most: whose row has the largest gradient. */
function chosenRow(view) {
  const row = remembered.get(axisName(view, "query"));
  if (row !== undefined) return Math.min(row, view.labels.query.length - 1);
  const sizes = norms(["dS", "dZ", "dY"].map((symbol) => matrixOf(view, symbol)).find(Boolean));
  return sizes.indexOf(Math.max(...sizes));
}

function chosenCell(view, symbol) {
  const matrix = matrixOf(view, symbol);
  const {rowsAre, colsAre} = tensorsOf(view)[symbol];
  const along = (axis, length) => {
    const index = axis === "query" ? chosenRow(view) : remembered.get(axisName(view, axis));
    return index === undefined ? null : Math.min(index, length - 1);
  };
  return largestCell(matrix, along(rowsAre, matrix.rows), along(colsAre, matrix.cols));
}

/** The cell of the largest |entry| in this row and this column; null: in any. */
function largestCell(matrix, row, col) {
  const size = (i, j) => (Number.isFinite(matrix.at(i, j)) ? Math.abs(matrix.at(i, j)) : -1);
  const rows = row === null ? [...Array(matrix.rows).keys()] : [row];
  const cols = col === null ? [...Array(matrix.cols).keys()] : [col];
  let best = {row: rows[0], col: cols[0]};
  for (const i of rows) {
    for (const j of cols) {
      if (size(i, j) > size(best.row, best.col)) best = {row: i, col: j};
    }
  }
  return best;
}
