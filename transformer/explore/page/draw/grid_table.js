"use strict";
// A small grid: an HTML table, a number in each cell. Called by grid() alone.

function gridTable(matrix, given) {
  const table = make("table", "cells");
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", `${given.name}, ${matrix.rows} by ${matrix.cols}`);
  if (given.onCell) table.classList.add("can-choose");
  if (matrix.cols > 10) table.classList.add("narrow");
  if (matrix.data.length === 1) table.classList.add("single");
  table.append(headRow(given), bodyRows(matrix, given));
  listenToTable(table, matrix, given);
  return table;
}

function headRow(given) {
  const row = make("tr", "", make("td", "corner"));
  given.colLabels.forEach((label, col) => {
    const cell = make("th", [...label].length > 3 ? "upright" : "", make("span", "", label));
    cell.scope = "col";
    cell.title = label;
    if (given.tokens.cols) standsFor(cell, {...given.tokens.cols, place: col});
    row.append(cell);
  });
  return make("thead", "", row);
}

function bodyRows(matrix, given) {
  const body = make("tbody");
  const {text} = formatter(matrix);
  const tabStop = given.selected ?? {row: 0, col: 0};
  for (let row = 0; row < matrix.rows; row++) {
    const label = make("th", "", make("span", "", given.rowLabels[row]));
    label.scope = "row";
    label.title = given.rowLabels[row];
    if (given.tokens.rows) standsFor(label, {...given.tokens.rows, place: row});
    const line = make("tr", "", label);
    for (let col = 0; col < matrix.cols; col++) line.append(tableCell(matrix, given, row, col, text, tabStop));
    body.append(line);
  }
  return body;
}

function tableCell(matrix, given, row, col, text, tabStop) {
  const value = matrix.at(row, col);
  const shown = text(value);
  // Stripes would run through the number of a masked cell: it stands on a ground of its own.
  const cell = make("td", "cell", isMasked(given.mask, row, col) ? make("span", "on-stripes", shown) : shown);
  cell.setAttribute("role", "gridcell");
  cell.setAttribute("aria-label", cellText(matrix, given, row, col));
  Object.assign(cell.dataset, {row, col, value, key: `${given.name}:${row}:${col}`});
  cell.tabIndex = tabStop.row === row && tabStop.col === col ? 0 : -1;
  const lit = isLit(given.highlight, row, col);
  const full = paintRgb(given.kind, value, given.scale);
  const colour = given.highlight.length && !lit ? fadedRgb(full) : full;
  cell.style.backgroundColor = cssColour(colour);
  if (value !== 0 && Number(shown) === 0) cell.classList.add("rounded-away");
  else cell.style.color = inkOn(colour);
  if (isMasked(given.mask, row, col)) cell.classList.add("masked");
  if (lit) {
    cell.classList.add("lit");
    cell.style.boxShadow = edges(given.highlight, row, col, matrix);
  }
  if (given.selected?.row === row && given.selected.col === col) {
    cell.classList.add("selected");
    cell.setAttribute("aria-selected", "true");
  }
  return cell;
}

/** The outline of the highlighted cells, drawn where one borders on a cell that is not highlighted. */
function edges(highlight, row, col, matrix) {
  const dark = (r, c) => r < 0 || c < 0 || r >= matrix.rows || c >= matrix.cols || !isLit(highlight, r, c);
  const sides = [];
  if (dark(row - 1, col)) sides.push("inset 0 2px 0 var(--mark)");
  if (dark(row + 1, col)) sides.push("inset 0 -2px 0 var(--mark)");
  if (dark(row, col - 1)) sides.push("inset 2px 0 0 var(--mark)");
  if (dark(row, col + 1)) sides.push("inset -2px 0 0 var(--mark)");
  return sides.join(", ");
}

function listenToTable(table, matrix, given) {
  const placeOf = (target) => {
    const cell = target.closest("td.cell");
    return cell && {cell, row: Number(cell.dataset.row), col: Number(cell.dataset.col)};
  };
  table.addEventListener("click", (event) => {
    const place = placeOf(event.target);
    if (place && given.onCell) given.onCell(place.row, place.col);
  });
  table.addEventListener("pointermove", (event) => {
    const place = placeOf(event.target);
    showTip(place && cellText(matrix, given, place.row, place.col), event.clientX, event.clientY);
  });
  table.addEventListener("pointerleave", () => showTip(null));
  table.addEventListener("keydown", (event) => {
    const place = placeOf(event.target);
    if (!place || event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.key === "Enter" || event.key === " ") && given.onCell) {
      event.preventDefault();
      given.onCell(place.row, place.col);
      return;
    }
    const next = cellAfter(event.key, place, matrix);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation(); // within a grid the arrow keys move among its cells, not along the strip
    place.cell.tabIndex = -1;
    const to = table.querySelector(`td[data-row="${next.row}"][data-col="${next.col}"]`);
    to.tabIndex = 0;
    to.focus();
  });
}
