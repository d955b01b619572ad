"use strict";
// One cell written out: the sum that makes it, with its numbers.

/** An element for what explainCell says of the chosen cell; before the last stop of the slider, the sum so far. */
function workedSum(view, worked) {
  const {symbol, cell, terms} = view.state;
  const count = accumulates(symbol, view.result) ? terms : null;
  const box = make("div", "worked");
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "The chosen cell, written out");
  const {label} = TENSORS[symbol];
  const line = make("div", "terms", make("span", "cell-name", ...withSubscripts(label), `[${cell.row}, ${cell.col}] =`));
  const most = Math.max(...worked.terms.map(({product}) => Math.abs(product)), 0);
  const shown = count === null ? worked.terms : worked.terms.slice(0, count);
  shown.forEach((term, n) => line.append(...(n ? [make("span", "operator", "+")] : []), termElement(view, term, most)));
  const partial = count === null ? worked.sum : shown.reduce((sum, {product}) => sum + product, 0);
  const total = make("span", "total", `${shown.length ? "= " : ""}${formatNumber(partial, 5)}`);
  Object.assign(total.dataset, {value: partial});
  total.title = String(partial);
  line.append(total);
  box.append(line, make("p", "hint", ...withSubscripts(worked.formula), cellPlace(view, symbol, cell)));
  if (worked.aside) box.append(asideOf(view, worked.aside));
  if (worked.note) box.append(make("p", "hint", worked.note));
  return box;
}

/** "; row wa, column 5": where the cell is, if tokens name it. */
function cellPlace(view, symbol, {row, col}) {
  const {rowLabels, colLabels} = gridOptions(view, symbol);
  const names = [rowLabels?.[row] && `row ${row} is “${rowLabels[row]}”`, colLabels?.[col] && `column ${col} is “${colLabels[col]}”`];
  const given = names.filter(Boolean);
  return given.length ? `; ${given.join(", ")}` : "";
}

/** One product of the sum, coloured by its sign and size. */
function termElement(view, {factors, product}, most) {
  let first = true;
  const write = (value) => { // a minus after another sign needs parentheses
    const text = first || value >= 0 ? formatNumber(value, 3) : `(${formatNumber(value, 3)})`;
    first = false;
    return text;
  };
  const element = make("span", "term", factors.map((factor) => factorText(factor, write)).join(" · "));
  if (factors.length > 1) element.append(make("small", "", formatNumber(product, 3)));
  element.style.backgroundColor = paint("gradient", product, most);
  element.style.color = ink("gradient", product, most);
  element.dataset.product = product;
  element.title = withoutPrimes(view, factors.map(factorName).join(" · "));
  return element;
}

/** "A′[3, 2]", with the head or the batch item where it is another than the chosen one. */
function factorName(factor) {
  if (factor.kind) return `${factor.kind} of ${factor.of.map(factorName).join(" and ")}`;
  if (!factor.symbol) return factor.label;
  const {symbol, i, j, head, item} = factor;
  const elsewhere = [head === undefined ? "" : ` of head ${head}`, item === undefined ? "" : ` of sentence ${item}`].join("");
  return `${TENSORS[symbol]?.label ?? symbol}[${i}, ${j}]${elsewhere}`;
}

/** A sum that a factor of the cell stands for, such as the denominator of a softmax. */
function asideOf(view, {formula, terms, sum}) {
  const most = Math.max(...terms.map(({product}) => Math.abs(product)), 0);
  const line = make("div", "terms aside", make("span", "formula", "where ", ...withSubscripts(formula), " ="));
  terms.forEach((term, n) => line.append(...(n ? [make("span", "operator", "+")] : []), termElement(view, term, most)));
  line.append(make("span", "total", `= ${formatNumber(sum, 5)}`));
  return line;
}
