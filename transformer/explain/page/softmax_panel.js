"use strict";
// The softmax panel: one query row i of A = softmax(S̄) and of its backward, as bars over the keys.
//
//   forward: A = exp(S̄) / Σⱼ exp(S̄)     so here: dS = J dA with J = diag(a) − a aᵀ, which is dS = a ∘ (dA − D), D = a·dA

let showJacobian = false; // the panel's own switch

/** Row `i` of the softmax: arrays over the keys, the number D, the Jacobian, and its product with dA. */
function softmaxRow(head, i) {
  const [A, dA, dS] = [head.A, head.dA, head.dS].map((matrix) => Array.from(matrix.row(i)));
  const sum = (terms) => terms.reduce((total, x) => total + x, 0);
  const D = sum(A.map((a, j) => a * dA[j]));
  const jacobian = makeMatrix(A.length, A.length, (j, k) => (j === k ? A[j] : 0) - A[j] * A[k]);
  const product = A.map((_, j) => sum(dA.map((x, k) => jacobian.at(j, k) * x)));
  // Rounding errors are as large as the terms before they cancel allow.
  const size = sum(A.map((a, j) => a * (Math.abs(dA[j]) + Math.abs(D))));
  return {A, dA, dS, D, jacobian, product, size, sum: sum(dS),
    difference: Math.max(...product.map((x, j) => Math.abs(x - dS[j])))};
}

/** Zero but for the rounding of doubles. */
const isRounding = (difference, size) => Math.abs(difference) <= 1e-12 * size;

function renderSoftmax(container, view) {
  const {state, head, labels, mask} = view;
  const i = state.row;
  const row = softmaxRow(head, i);
  const allowed = labels.key.map((_, j) => mask === null || mask.at(i, j) !== 0);
  const columns = labels.key.map((label, j) => ({label, masked: !allowed[j]}));
  const most = [0.1, 0.2, 0.5, 1].find((height) => Math.max(...row.A) <= height) ?? 1; // many keys: many small weights
  const bars = barTable({label: `Softmax and its backward for the query ${labels.query[i]}`, columns, rows: [
    {symbol: "A", name: `weights, 0 to ${most}`, values: row.A, kind: "weight", low: 0, high: most},
    {symbol: "dA", name: "with the line D", values: row.dA, kind: "gradient", ...rangeOf([...row.dA, row.D]), line: row.D},
    {symbol: "dS", name: "A ∘ (dA − D)", values: row.dS, kind: "gradient", ...rangeOf(row.dS)},
  ]});
  container.append(rowChooser(labels.query, i),
    forwardAndBack("A = softmax(S̄), row by row", "dS = A ∘ (dA − D), where D = Σⱼ A dA is one number for the row"),
    build("div", {class: "side-by-side"}, bars, build("div", {class: "reading"}, ...readingOf(row, allowed), jacobianSwitch())));
  if (showJacobian) container.append(...jacobianView(view, row));
}

/** The row in words and sums. */
function readingOf(row, allowed) {
  const line = build("span", {class: "line-key", "aria-hidden": "true"});
  const mean = build("p", {"data-fact": "D"}, line, " D = Σⱼ A dA = ", exactNumber(row.D), ", the mean of dA under the weights.");
  const zero = isRounding(row.sum, row.size);
  const sum = fact(zero, "Σⱼ dS = ", exactNumber(row.sum), zero ? ", which is 0 but for rounding" : ", which must be 0",
    ": adding one number to all the scores of a row changes no weight.");
  sum.dataset.fact = "sum";
  const wrong = isRounding(row.difference, row.size) ? [] : [fact(false, "dS is not the gradient of the softmax: it differs from ",
    "A ∘ (dA − D) by up to ", exactNumber(row.difference), ".")];
  return [mean, build("p", {}, whatTheRowSays(row, allowed)), sum, ...wrong];
}

/** What there is to see in the bars, in words. */
function whatTheRowSays({A, size}, allowed) {
  const seen = allowed.filter(Boolean).length;
  if (seen === 0) return "This query may attend to nothing: no weight, no gradient.";
  if (seen === 1) return "This query sees one key: its weight is 1 whatever the score, so dA − D and dS are 0.";
  if (size === 0) return "No gradient reaches this query: the loss does not depend on its output.";
  if (Math.max(...A) > 0.999) return "One weight is nearly 1: D is nearly its dA, and hardly any gradient gets through.";
  const masked = seen < allowed.length ? " At a masked key (hatched) dA may be anything: without weight it does not count." : "";
  return `Descent raises the score of a key whose dA is below the line, and lowers one whose dA is above it.${masked}`;
}

function rowChooser(labels, chosen) {
  const select = build("select", {id: "softmax-row", "data-key": "softmax:row",
    onchange: (event) => setState({row: Number(event.target.value)})},
    ...labels.map((label, i) => build("option", {value: i}, `${i} · ${label}`)));
  select.value = String(chosen);
  const step = (by, sign, name) => {
    const button = build("button", {type: "button", class: "small", "data-key": `softmax:${name}`, "aria-label": `${name} query row`,
      onclick: () => setState({row: chosen + by})}, sign);
    button.disabled = labels[chosen + by] === undefined;
    return button;
  };
  return build("div", {class: "panel-controls"}, build("label", {for: "softmax-row"}, "Query row"),
    step(-1, "‹", "previous"), select, step(1, "›", "next"));
}

function jacobianSwitch() {
  const box = build("input", {type: "checkbox", "data-key": "softmax:jacobian",
    onchange: (event) => { showJacobian = event.target.checked; setState({}); }});
  box.checked = showJacobian;
  return build("label", {class: "panel-controls"}, box, " Show the Jacobian, and that it gives the same");
}

/** J · dA = J dA, beside dS. */
function jacobianView(view, row) {
  const {labels, commonScale} = view;
  const column = (values) => new Matrix(values.length, 1, Float64Array.from(values));
  const scale = commonScale ?? undefined;
  const part = (title, matrix, kind, colLabels, scaleOfIt) => build("figure", {"data-part": title},
    build("figcaption", {}, title), grid(matrix, {rowLabels: labels.key, colLabels, kind, scale: scaleOfIt}));
  const [dA, product, dS] = [row.dA, row.product, row.dS].map(column);
  const common = scale ?? Math.max(extent(product), extent(dS));
  const equation = build("div", {class: "equation on-one-line"}, part("J = diag(a) − a aᵀ", row.jacobian, "value", labels.key),
    build("span", {class: "operator"}, "·"), part("dA", dA, "gradient", [""], scale),
    build("span", {class: "operator"}, "="), part("J · dA", product, "gradient", [""], common),
    build("span", {class: "operator"}, "="), part("dS", dS, "gradient", [""], common));
  const same = fact(isRounding(row.difference, row.size), "The largest difference between J · dA and dS is ",
    exactNumber(row.difference), isRounding(row.difference, row.size) ? ". " : ": dS is not the softmax's gradient. ",
    `J has ${labels.key.length}² entries; A ∘ (dA − D) needs none of them.`);
  same.dataset.fact = "jacobian";
  return [forwardAndBack("∂Aⱼ/∂S̄ₖ = Aⱼ (1 − Aⱼ) where j = k, and −Aⱼ Aₖ elsewhere", "dS = J dA (J is its own transpose)"),
    scroller("The Jacobian times dA", equation), same];
}

PANELS.push({id: "softmax", title: "Softmax", render: renderSoftmax});
