"use strict";
// What the panels, the map and the story are built from: elements, statements, tables and bars.
//
// How to use:
//   build("p", {class: "note", "data-key": "a:b", onclick: f}, "text", child)   an element
//   inSvg("rect", {width: 3}, child)         an element of an SVG
//   exactNumber(value)                       the number as text, with all its digits in data-value
//   fact(holds, ...children)                 a ticked (or crossed) statement
//   tableOf(attributes, head, rows)          a table
//   barTable({label, labels, side, columns}) bars over tokens, a column for each quantity
//   lengthOf(vector), norms(matrix)          the norm of a vector, and of every row
//   isChanged(view)                          whether the reader has changed what the page's numbers are of

/** An element; attributes that are null or false are left out, on… are listeners. */
function build(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value; // the page's policy refuses a style in an attribute
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** An element of an SVG, likewise. */
function inSvg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const exactNumber = (value, digits = 4) =>
  build("span", {class: "exact", "data-value": value, title: String(value)}, formatNumber(value, digits));

/** ✓ or ✗, which a reader who sees no colour can tell apart too. */
const checkMark = (holds, spoken) =>
  build("span", {class: holds ? "mark good" : "mark bad", role: "img", "aria-label": spoken}, holds ? "✓" : "✗");

/** A statement that was checked. */
const fact = (holds, ...children) => build("p", {class: holds ? "fact holds" : "fact fails", "data-holds": String(holds)},
  checkMark(holds, holds ? "holds:" : "fails:"), " ", ...children);

/** Zero but for the rounding of doubles, where terms of this size cancelled. */
const isRounding = (difference, size) => Math.abs(difference) <= 1e-12 * size;

const headCell = (text) => build("th", {scope: "col"}, text);

const tableOf = (attributes, head, rows) => build("table", attributes,
  build("thead", {}, build("tr", {}, ...head)), build("tbody", {}, ...rows));

/**
 * Bars over tokens: a line for each token, a column for each quantity.
 *
 * masked: which tokens are, or null; side: the sentence they are of, or null; chosen: the line that stands out. columns: [{symbol, id, name, values, kind:
 * "weight" | "gradient", low, high, line, marks}]: the bars stand on 0 between `low` and `high`; `line`, if there is one, is
 * drawn across all of them, with the name D; `marks` are values to compare the bars with; `id` is data-bars, unless the symbol will do.
 */
function barTable({label, labels, masked = null, side = null, chosen = null, columns}) {
  const named = (element, place) => {
    element.classList.toggle("chosen", place === chosen);
    return side ? standsFor(element, {side, place}) : element;
  };
  const names = labels.map((token, j) => named(build("span", {class: masked?.[j] ? "bar-name masked" : "bar-name", title: token}, token), j));
  return build("div", {class: "bars", role: "group", "aria-label": label},
    build("div", {class: "bar-names"}, build("span", {class: "bar-head"}), ...names),
    ...columns.map((column) => build("div", {class: "bar-column", role: "list", "aria-label": `${column.symbol}, ${column.name}`, "data-bars": column.id ?? column.symbol},
      build("span", {class: "bar-head", title: column.name}, build("b", {class: "symbol"}, ...withSubscripts(column.symbol)), " ", column.name),
      ...barCells(column, labels, masked).map(named))));
}

/** Places are in per cent of the cell, from its left. */
function barCells({symbol, values, kind, low, high, line, marks}, labels, masked) {
  const place = (x) => (high > low ? 100 * (x - low) / (high - low) : 0);
  const text = formatter({data: values});
  const at = (className, x) => build("span", {class: className, style: `left: ${place(x)}%`});
  return values.map((value, j) => {
    const [left, right] = [place(Math.min(value, 0)), place(Math.max(value, 0))];
    const colour = kind === "weight" ? "weight" : value < 0 ? "negative" : "positive";
    return build("span", {class: masked?.[j] ? "bar-cell masked" : "bar-cell", role: "listitem", "data-value": value, title: `${symbol}, ${labels[j]}: ${value}`},
      build("span", {class: "bar-box"}, build("span", {class: `bar-fill ${colour}`, style: `left: ${left}%; width: ${right - left}%`}),
        low < 0 ? at("bar-zero", 0) : null, line === undefined ? null : at("bar-line", line), marks && Math.abs(marks[j] - value) > 0.01 * (high - low) ? at("bar-mark", Math.min(marks[j], high)) : null),
      build("span", {class: "bar-number"}, text(value)));
  });
}

const lengthOf = (vector) => Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
const norms = (matrix) => Array.from({length: matrix.rows}, (_, i) => lengthOf(matrix.row(i)));
const largestDifference = (a, b) => largestOf(combine(a, b, (x, y) => x - y));

/** The ends of a box in which bars of both signs fit. */
function rangeOf(values) {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  return low === high ? {low: -1, high: 1} : {low, high};
}

/** The texts, the weights, or a switch. */
function isChanged({state, session}) {
  const opening = openingTexts(state.item);
  return state.source !== opening.source || state.target !== opening.target || session.version > 0
    || JSON.stringify(optionsOf(state)) !== JSON.stringify(PLAIN);
}
