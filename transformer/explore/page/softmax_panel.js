"use strict";
// The softmax panel: one query row i of A = softmax(S̄) and of its backward, as bars over the keys.
//
//   forward: A = exp(S̄) / Σⱼ exp(S̄)    so here: dS = J dA with J = diag(a) − a aᵀ, which is a∘(dA − D) with D = a·dA

let showJacobian = false; // the panel's own switch

/** Row `i` of the softmax: arrays over the keys, the number D, the Jacobian, and its product with dA. */
function softmaxRow(head, i) {
  const [A, dA, dS] = [head.A, head.dA, head.dS].map((matrix) => Array.from(matrix.row(i)));
  const sum = (terms) => terms.reduce((total, x) => total + x, 0);
  const D = sum(A.map((a, j) => a * dA[j]));
  const jacobian = makeMatrix(A.length, A.length, (j, k) => (j === k ? A[j] : 0) - A[j] * A[k]);
  const product = A.map((_, j) => sum(dA.map((x, k) => jacobian.at(j, k) * x)));
  const difference = Math.max(...product.map((x, j) => Math.abs(x - dS[j])));
  const size = sum(A.map((a, j) => a * (Math.abs(dA[j]) + Math.abs(D)))); // of the terms that cancel in the sum of dS
  return {A, dA, dS, D, jacobian, product, difference, size, sum: sum(dS)};
}

function renderSoftmax(container, view) {
  const {state: {row: i}, head, labels, mask} = view;
  const row = softmaxRow(head, i);
  const masked = labels.key.map((_, j) => mask !== null && mask.at(i, j) === 0);
  const most = [0.1, 0.2, 0.5, 1].find((height) => Math.max(...row.A) <= height) ?? 1; // of many keys each weighs little
  const bars = barTable({label: `Softmax and its backward for the query ${labels.query[i]}`, labels: labels.key, masked, rows: [
    {symbol: "A", name: `weights, 0 to ${most}`, values: row.A, kind: "weight", low: 0, high: most},
    {symbol: "dA", name: "with the line D", values: row.dA, kind: "gradient", ...rangeOf([...row.dA, row.D]), line: row.D},
    {symbol: "dS", name: "A∘(dA − D)", values: row.dS, kind: "gradient", ...rangeOf(row.dS)},
  ]});
  container.append(rowChooser(labels, i),
    forwardAndBack(asShown(view, "A = softmax(S̄), row by row"), "dS = A∘(dA − D), where D = Σⱼ A dA is one number for the row"),
    build("div", {class: "side-by-side"}, bars,
      build("div", {class: "reading"}, ...readingOf(row, masked), jacobianSwitch())));
  if (showJacobian) container.append(...jacobianView(view, row));
}

/** The row in words and sums. */
function readingOf(row, masked) {
  const line = build("span", {class: "line-key", "aria-hidden": "true"});
  const zero = isRounding(row.sum, row.size);
  const sum = fact(zero, "Σⱼ dS = ", exactNumber(row.sum), zero ? ", which is 0 but for rounding" : ", which must be 0",
    ": adding one number to all the scores of a row changes no weight.");
  sum.dataset.fact = "sum";
  const right = isRounding(row.difference, row.size);
  return [
    build("p", {"data-fact": "D"}, line, " D = Σⱼ A dA = ", exactNumber(row.D), ", the mean of dA under the weights."),
    build("p", {}, whatTheRowSays(row, masked)),
    sum,
    right ? null : fact(false, "dS is not the gradient of the softmax: it differs from A∘(dA − D) by up to ",
      exactNumber(row.difference), "."),
  ].filter((part) => part !== null);
}

/** What there is to see in the bars. */
function whatTheRowSays({A, size}, masked) {
  const seen = masked.filter((is) => !is).length;
  if (seen === 0) return "This query may attend to nothing: no weight, no gradient.";
  if (seen === 1) return "This query sees one key: its weight is 1 whatever the score, so dA − D and dS are 0.";
  if (size === 0) return "No gradient reaches this query: the loss does not depend on its output.";
  if (Math.max(...A) > 0.999) return "One weight is nearly 1: D is nearly its dA, and hardly any gradient gets through.";
  const aboutMasked = " At a masked key (hatched) dA may be anything: without weight it does not count.";
  return "Descent raises the score of a key whose dA is below the line, and lowers one whose dA is above it."
    + (seen < masked.length ? aboutMasked : "");
}

function rowChooser({query, next}, chosen) {
  const choose = (row) => setState({row});
  const select = build("select",
    {id: "softmax-row", "data-key": "softmax:row", onchange: (event) => choose(Number(event.target.value))},
    ...query.map((token, i) => build("option", {value: i}, `${i} · ${token}${next?.[i] ? ` → ${next[i]}` : ""}`)));
  select.value = String(chosen);
  const step = (row, sign, name) => build("button", {type: "button", class: "small", "data-key": `softmax:${name}`,
    "aria-label": `${name} query row`, disabled: query[row] === undefined, onclick: () => choose(row)}, sign);
  return build("div", {class: "panel-controls"}, build("label", {for: "softmax-row"}, "Query row"),
    step(chosen - 1, "‹", "previous"), select, step(chosen + 1, "›", "next"));
}

function jacobianSwitch() {
  const toggle = (event) => {
    showJacobian = event.target.checked;
    setState({});
  };
  const box = build("input", {type: "checkbox", "data-key": "softmax:jacobian", checked: showJacobian, onchange: toggle});
  return build("label", {class: "panel-controls"}, box, " Show the Jacobian, and that it gives the same");
}

/** J · dA = J dA, beside dS. */
function jacobianView(view, row) {
  const {labels, commonScale} = view;
  const part = (title, matrix, options) => build("figure", {"data-part": title}, build("figcaption", {}, title),
    grid(matrix, {name: title, rowLabels: labels.key, ...options}));
  const operator = (sign) => build("span", {class: "operator"}, sign);
  const [dA, product, dS] = [row.dA, row.product, row.dS].map((values) => new Matrix(values.length, 1, Float64Array.from(values)));
  const column = {kind: "gradient", colLabels: [""]};
  const result = {...column, scale: commonScale ?? Math.max(extent(product), extent(dS))};
  const equation = build("div", {class: "equation on-one-line"},
    part("J = diag(a) − a aᵀ", row.jacobian, {kind: "value", colLabels: labels.key}), operator("·"),
    part("dA", dA, {...column, scale: commonScale ?? undefined}), operator("="),
    part("J · dA", product, result), operator("="), part("dS", dS, result));
  const right = isRounding(row.difference, row.size);
  const same = fact(right, "The largest difference between J · dA and dS is ", exactNumber(row.difference),
    right ? `. J has ${labels.key.length}² entries; A∘(dA − D) needs none of them.` : ": dS is not the softmax's gradient.");
  same.dataset.fact = "jacobian";
  const formulas = forwardAndBack(asShown(view, "∂Aⱼ/∂S̄ₖ = Aⱼ (1 − Aⱼ) where j = k, and −Aⱼ Aₖ elsewhere"),
    "dS = J dA, since J is its own transpose");
  return [formulas, scroller("The Jacobian times dA", equation), same];
}

PANELS.push({id: "softmax", title: "Softmax", render: renderSoftmax});
