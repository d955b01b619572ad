"use strict";
// What a reader changes in a run, as taps on its tape (autodiff.js): an edit of one entry, a mistake in the backward.
//
// How to use:
//   tapOfEdit({path, symbol, head, row, col, offset}, item) -> tap     adds `offset` to the entry, in this batch item
//   tapOfMistake(breakage) -> tap                                      the mistake in every attention where it applies
//   inTurn(first, second) -> tap
//
// An edit adds a constant, the difference to the entry as it was. So gradients pass on unchanged to what comes before,
// and a finite difference that moves that moves the edited entry too.

const inTurn = (first, second) => (symbol, matrix, record) => second(symbol, first(symbol, matrix, record), record);

function tapOfEdit(edit, item) {
  if (edit === null) return untouched;
  const isEdited = (symbol, {item: own, index, place}) => (
    symbol === edit.symbol && own === item && place.path === edit.path
    && (index === undefined || index === edit.head));
  return (symbol, matrix, record) => (isEdited(symbol, record) ? moveEntry(matrix, edit) : matrix);
}

function tapOfMistake(breakage) {
  if (breakage === null) return untouched;
  const rulesOf = ({kind, problem}) => (kind === "attention" && breakage.applies(problem) ? breakage.replaces(problem) : {});
  const rules = new Map(); // by place
  return (symbol, matrix, record) => {
    if (!/^[dD]/.test(symbol)) return matrix; // of the forward, in which not all items are known yet
    if (!rules.has(record.place)) rules.set(record.place, rulesOf(record.place));
    return rules.get(record.place)[symbol]?.matrix(matrix, record, record.place.problem) ?? matrix;
  };
}

/** The matrix with `offset` added to one entry. */
function moveEntry(matrix, {row, col, offset}) {
  const moved = new Matrix(matrix.rows, matrix.cols, matrix.data.slice());
  moved.set(row, col, matrix.at(row, col) + offset);
  return moved;
}
