"use strict";
// One cell written out: the sum that makes it, with its numbers.

/** An element for what explainCell says of the chosen cell. */
function workedSum(view, worked) {
  const {symbol, cell} = view.state;
  const box = make("div", "worked");
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "The chosen cell, written out");
  const line = make("div", "terms", make("span", "cell-name", ...withSubscripts(labelOf(view, symbol)), `[${cell.row}, ${cell.col}] =`));
  const most = Math.max(...worked.terms.map(({product}) => Math.abs(product)), 0);
  const colour = {kind: paintOf(view, symbol), scale: paintOf(view, symbol) === "weight" ? 1 : most};
  worked.terms.forEach((term, n) => line.append(...(n ? [make("span", "operator", "+")] : []), termElement(view, term, colour)));
  const total = make("span", "total", `${worked.terms.length ? "= " : ""}${formatNumber(worked.sum, 5)}`);
  Object.assign(total.dataset, {value: worked.sum});
  total.title = String(worked.sum);
  line.append(total, playButton(view));
  scrollIfLong(line, worked.terms.length, "The products of the sum", "products");
  box.append(line, make("p", "hint", ...withSubscripts(worked.formula), cellPlace(view, symbol, cell)));
  if (worked.aside) box.append(asideOf(view, worked.aside));
  if (worked.note) box.append(make("p", "hint", worked.note));
  return box;
}

/** A sum of many products scrolls, with the keyboard too. */
function scrollIfLong(line, count, name, key) {
  if (count <= 40) return;
  line.classList.add("long");
  Object.assign(line, {tabIndex: 0, role: "group", ariaLabel: name});
  line.dataset.key = key;
}

/** "; counted from 0, row 6 is “wa”": where the cell is, if tokens name it. */
function cellPlace(view, symbol, {row, col}) {
  const {rowLabels, colLabels} = gridOptions(view, symbol);
  const names = [["row", row, rowLabels], ["column", col, colLabels]]
    .filter(([, index, labels]) => labels?.[index])
    .map(([axis, index, labels]) => `${axis} ${index} is “${labels[index]}”`);
  return names.length ? `; counted from 0, ${names.join(", ")}` : "";
}

/** One product of the sum, in the colours of what it is summed to: of a value, a weight or a gradient. */
function termElement(view, {factors, product}, {kind, scale}) {
  const element = make("span", "term", factors.map((factor, n) => factorInNumbers(factor, n === 0)).join(" · "));
  if (factors.length > 1) element.append(make("small", "", formatNumber(product, 3)));
  element.style.backgroundColor = paint(kind, product, scale);
  element.style.color = ink(kind, product, scale);
  element.dataset.product = product;
  element.title = asShown(view, factors.map((factor) => factorName(view, factor)).join(" · "));
  return element;
}

/** A factor in numbers; a minus that follows another sign needs parentheses. */
function factorInNumbers(factor, opens) {
  let plain = opens || factor.kind; // what opens the product, or the parentheses of a difference
  return factorText(factor, (value) => {
    const text = plain || value >= 0 ? formatNumber(value, 3) : `(${formatNumber(value, 3)})`;
    plain = false;
    return text;
  });
}

/** "A[3, 2]", with the head or the batch item where it is another than the chosen one. */
function factorName(view, factor) {
  if (factor.kind) return `${factor.name ?? factor.kind} of ${factor.of.map((inner) => factorName(view, inner)).join(" and ")}`;
  if (!factor.symbol) return factor.label;
  const {symbol, i, j, head, item} = factor;
  const [ofHead, ofItem] = [head === undefined ? "" : ` of head ${head}`, item === undefined ? "" : ` of sentence ${item}`];
  return `${labelOf(view, symbol)}[${i}, ${j}]${ofHead}${ofItem}`;
}

/** A sum that a factor of the cell stands for, such as the denominator of a softmax. */
function asideOf(view, {formula, terms, sum}) {
  const most = Math.max(...terms.map(({product}) => Math.abs(product)), 0);
  const colour = {kind: isGradient(view.state.symbol) ? "gradient" : "value", scale: most};
  const line = make("div", "terms aside", make("span", "formula", "where ", ...withSubscripts(asShown(view, formula)), " ="));
  terms.forEach((term, n) => line.append(...(n ? [make("span", "operator", "+")] : []), termElement(view, term, colour)));
  line.append(make("span", "total", `= ${formatNumber(sum, 5)}`));
  scrollIfLong(line, terms.length, "The sum that a factor stands for", "aside");
  return line;
}
