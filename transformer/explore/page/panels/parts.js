"use strict";
// What the panels, the map and the story are built from: elements, statements, tables and bars.
//
// How to use:
//   build("p", {class: "note", "data-key": "a:b", onclick: f}, "text", child)   an element
//   inSvg("rect", {width: 3}, child)         an element of an SVG
//   exactNumber(value)                       the number as text, with all its digits in data-value
//   fact(holds, ...children)                 a ticked (or crossed) statement
//   forwardAndBack(formula, gradient)        "forward …", "so here …"
//   tableOf(attributes, head, rows)          a table; scroller(label, child) for what may be wider than the page
//   barTable({label, labels, side, rows})    bars over tokens, a row of bars for each quantity
//   lengthOf(vector), norms(matrix)          the norm of a vector, and of every row
//   changesOf(view)                          what was changed since the page was made, in words; "" if nothing was

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

/** Two lines: what the forward did, and what the backward makes of it. */
function forwardAndBack(forward, backward) {
  const line = (which, formula) =>
    build("p", {class: "formula"}, build("span", {class: "which"}, which), ...withSubscripts(formula));
  return build("div", {}, line("forward", forward), line("so here", backward));
}

/** A box that scrolls where the child is wider than the page, and then says so: many browsers hide their scrollbars. */
function scroller(label, child, attributes = {}) {
  const box = build("div",
    {class: "scroller", role: "region", "aria-label": label, tabindex: "0", "data-key": `scroll:${label}`}, child);
  widths.observe(box);
  return build("div", {class: "scrolls", ...attributes},
    build("p", {class: "more", "aria-hidden": "true"}, "Scroll sideways for the rest →"), box);
}

const widths = new ResizeObserver((entries) => entries.forEach(({target}) =>
  target.classList.toggle("overflows", target.scrollWidth > target.clientWidth)));

const headCell = (text) => build("th", {scope: "col"}, text);

const tableOf = (attributes, head, rows) => build("table", attributes,
  build("thead", {}, build("tr", {}, ...head)), build("tbody", {}, ...rows));

const UPRIGHT_BARS = 18; // with more columns than that, the numbers are written downwards

/**
 * A table of bars: a column for each token.
 *
 * masked: which tokens are, or null; side: the sentence they are of, or null. rows: [{symbol, id, name, values, kind:
 * "weight" | "gradient", low, high, line, marks, text}]: the bars stand on 0 in a box from `low` to `high`; `line`, if there
 * is one, is drawn across all of them, `marks` are values to compare the bars with; `text` writes a number, unless the row is
 * to have a power of ten of its own; `id` is data-bars, unless the symbol will do.
 */
function barTable({label, labels, masked = null, side = null, rows}) {
  const narrow = labels.length > UPRIGHT_BARS;
  const columns = labels.map((token, j) => ({token, masked: masked !== null && masked[j]}));
  const head = columns.map((column, place) => {
    const cell = build("th", {scope: "col", class: column.masked ? "masked" : null, title: column.token},
      build("span", {class: [...column.token].length <= 2 ? "short" : null}, column.token));
    return side ? standsFor(cell, {side, place}) : cell;
  });
  const body = rows.map((row) => {
    const {unit, text} = row.text ? {unit: "", text: row.text} : formatter({data: row.values});
    const name = build("th", {scope: "row"}, build("b", {}, ...withSubscripts(row.symbol)), " ",
      build("span", {}, row.name, unit && ` ${unit}`));
    const least = narrow ? 0.1 * largestOf({data: row.values}) : 0; // upright numbers are hard to read: the small ones are left out
    const cells = row.values.map((value, j) => {
      const cell = barCell(value, row, columns[j], Math.abs(value) >= least ? text(value) : "", row.marks?.[j]);
      return side ? standsFor(cell, {side, place: j}) : cell;
    });
    return build("tr", {"data-bars": row.id ?? row.symbol}, name, ...cells);
  });
  const table = tableOf({class: narrow ? "bars narrow" : "bars", "aria-label": label}, [build("td"), ...head], body);
  return scroller(label, table, {style: `--columns: ${labels.length}`});
}

/** One bar; places are in per cent of the box, from its top. */
function barCell(value, {symbol, kind, low, high, line}, {token, masked}, text, mark) {
  const place = (y) => (high > low ? (100 * (high - y)) / (high - low) : 50);
  const [top, bottom] = [place(Math.max(value, 0)), place(Math.min(value, 0))];
  const colour = kind === "weight" ? "weight" : value < 0 ? "negative" : "positive";
  const box = build("div", {class: "bar-box"},
    build("span", {class: "bar-zero", style: `top: ${place(0)}%`}),
    value === 0 ? null : build("span", {class: `bar-fill ${colour}`, style: `top: ${top}%; height: ${bottom - top}%`}),
    line === undefined ? null : build("span", {class: "bar-line", style: `top: ${place(line)}%`}),
    mark === undefined || Math.abs(mark - value) < 0.01 * (high - low) ? null : build("span", {class: "bar-mark", style: `top: ${place(Math.min(mark, high))}%`}));
  const title = `${symbol}, ${token}${masked ? " (masked)" : ""}: ${value}`;
  return build("td", {"data-value": value, title, class: masked ? "masked" : null},
    box, build("span", {class: "bar-number"}, text));
}

const lengthOf = (vector) => Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
const norms = (matrix) => Array.from({length: matrix.rows}, (_, i) => lengthOf(matrix.row(i)));
const largestDifference = (a, b) => largestOf(combine(a, b, (x, y) => x - y));

/** Rows of bars that are norms and can be compared: on one scale, and without powers of ten of their own. */
function normRows(rows) {
  const high = Math.max(...rows.flatMap((row) => row.values)) || 1;
  const text = (norm) => (norm > 0 && norm < high / 1000 ? "≈ 0" : formatNumber(norm, 2));
  return rows.map((row) => ({...row, kind: "gradient", low: 0, high, text}));
}

/** The ends of a box in which bars of both signs fit. */
function rangeOf(values) {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  return low === high ? {low: -1, high: 1} : {low, high};
}

/** What the reader has changed, so that the page's numbers are no longer those of the run. */
function changesOf({state, session}) {
  const changes = [];
  const opening = openingTexts(state.item);
  if (state.source !== opening.source || state.target !== opening.target) changes.push("the texts are others");
  if (session.version > 0) changes.push("the weights have taken steps");
  if (!state.scaling) changes.push("√d_k is off");
  if (!state.masking) changes.push("the mask is off");
  if (state.edit !== null) changes.push(`one entry of ${state.edit.symbol} is edited`);
  const breakage = BREAKAGES.find(({key}) => key === state.broken);
  if (breakage) changes.push(`the backward is broken (“${breakage.title}”)`);
  return changes.length > 1 ? `${changes.slice(0, -1).join(", ")} and ${changes.at(-1)}` : changes.join("");
}
