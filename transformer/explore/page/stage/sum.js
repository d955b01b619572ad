"use strict";
// One cell written out: the sum that makes it, with its numbers, term by term.

const TIME_OF_SUM = 2500; // milliseconds

/** An element for what explainCell says of the chosen cell. */
function workedSum(view) {
  const {symbol, cell} = view.state, worked = workedCell(view, symbol, cell.row, cell.col);
  const colour = {kind: paintOf(view, symbol), scale: paintOf(view, symbol) === "weight" ? 1 : largestProduct(worked)};
  const terms = worked.terms.map((term, n) => build("span", {}, n ? build("span", {class: "operator"}, "+") : null, termElement(view, term, colour)));
  const total = build("span", {class: "total"});
  const show = (count) => {
    terms.forEach((term, n) => term.classList.toggle("unseen", n >= count));
    const sum = count >= terms.length ? worked.sum : sumOf(worked.terms.slice(0, count));
    total.textContent = `${terms.length ? "= " : ""}${formatNumber(sum, 5)}`;
    Object.assign(total.dataset, {value: sum});
    total.title = String(sum);
    pulse(count > 0 && count < terms.length ? entriesOf(view, worked.terms[count - 1]) : []);
  };
  const box = build("div", {class: "worked", role: "region", "aria-label": "The chosen cell, written out"},
    build("div", {class: "terms"}, build("span", {class: "cell-name"}, ...withSubscripts(labelOf(view, symbol)), `[${cell.row}, ${cell.col}] =`),
      ...terms, total, terms.length > 1 ? player({name: "sum", count: terms.length, show, time: TIME_OF_SUM}) : null),
    build("p", {class: "hint"}, ...withSubscripts(worked.formula), cellPlace(view, symbol, cell)),
    worked.aside && asideOf(view, worked.aside), worked.note && build("p", {class: "hint"}, worked.note));
  show(terms.length);
  return box;
}

const largestProduct = ({terms}) => Math.max(...terms.map(({product}) => Math.abs(product)), 0);

/** The grids of the operands that hold the entries of a term, with their places: [grid, row, col]. */
function entriesOf(view, term) {
  const simple = (factor) => (factor.of ? factor.of.flatMap(simple) : [factor]);
  const grids = [...document.querySelectorAll("#stage .grid")];
  const gridOf = (symbol, head) => [`${symbol} (head ${head + 1})`, `${symbol} (all heads)`, symbol]
    .map((name) => grids.find(({dataset}) => dataset.name === name)).find(Boolean)?.querySelector(".grid-box");
  return term.factors.flatMap(simple).filter(({symbol, item}) => symbol && item === undefined)
    .map(({symbol, i, j, head}) => [gridOf(shownSymbol(view, symbol), head), i, j]).filter(([host]) => host);
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
  const element = build("span", {class: "term", "data-product": product, title: asShown(view, factors.map((factor) => factorName(view, factor)).join(" · "))},
    factors.map((factor, n) => factorInNumbers(factor, n === 0)).join(" · "), factors.length > 1 ? build("small", {}, formatNumber(product, 3)) : null);
  element.style.backgroundColor = paint(kind, product, scale);
  element.style.color = ink(kind, product, scale);
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
  const [ofHead, ofItem] = [head === undefined ? "" : ` of head ${head + 1}`, item === undefined ? "" : ` of sentence ${item + 1}`];
  return `${labelOf(view, symbol)}[${i}, ${j}]${ofHead}${ofItem}`;
}

/** A sum that a factor of the cell stands for, such as the denominator of a softmax. */
function asideOf(view, {formula, terms, sum}) {
  const colour = {kind: isGradient(view.state.symbol) ? "gradient" : "value", scale: largestProduct({terms})};
  return build("div", {class: "terms aside"}, build("span", {}, "where ", ...withSubscripts(asShown(view, formula)), " ="),
    ...terms.flatMap((term, n) => [...(n ? [build("span", {class: "operator"}, "+")] : []), termElement(view, term, colour)]),
    build("span", {class: "total"}, `= ${formatNumber(sum, 5)}`));
}
