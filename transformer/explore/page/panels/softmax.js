"use strict";
// The view of the softmax: one query row i of A = softmax(S̄) and of its backward, as bars over the keys.
//
//   forward: A = exp(S̄) / Σⱼ exp(S̄)    so here: dS = J dA with J = diag(a) − a aᵀ, which is a∘(dA − D) with D = a·dA

const trial = {key: null, by: 0.1}; // the view's own choice: a score is raised by so much: that of a key, or (null) of the key with the largest |dS|

/** Row `i` of the softmax: arrays over the keys, the number D, and how far dS is from A∘(dA − D). */
function softmaxRow(head, i) {
  const [A, dA, dS] = [head.A, head.dA, head.dS].map((matrix) => Array.from(matrix.row(i)));
  const sum = (terms) => terms.reduce((total, x) => total + x, 0);
  const D = sum(A.map((a, j) => a * dA[j]));
  const difference = Math.max(...dS.map((x, j) => Math.abs(x - A[j] * (dA[j] - D))));
  const size = sum(A.map((a, j) => a * (Math.abs(dA[j]) + Math.abs(D)))); // of the terms that cancel in the sum of dS
  return {A, dA, dS, D, difference, size, sum: sum(dS)};
}

const SOFTMAX_ORDER = ["A", "dA", "D", "dS"];

/** How much of it is shown: a story shows nothing before it has come to it. */
function knownIn({state: {symbol}}) {
  const known = SOFTMAX_ORDER.indexOf(symbol);
  return !isTold() || known < 0 ? SOFTMAX_ORDER.length : known + 1;
}

function renderSoftmax(container, view) {
  const {state: {row: i}, head, labels, mask} = view;
  const row = softmaxRow(head, i), known = knownIn(view);
  const masked = labels.key.map((_, j) => mask !== null && mask.at(i, j) === 0);
  const bars = build("div", {}), said = build("output");
  const show = () => {
    bars.replaceChildren(softmaxBars(view, row, masked, known));
    said.replaceChildren(...trialInWords(row, labels.key));
  };
  show();
  container.append(build("h3", {}, `Row ${labels.query[i]}`), bars, build("ol", {class: "row-steps"}, ...readingOf(row, masked, labels, i).slice(0, known)));
  if (known < SOFTMAX_ORDER.length) return;
  container.append(...factsOfRow(row, masked));
  if (!specialRow(row, masked)) {
    container.append(build("div", {class: "trial"}, build("h3", {}, "Try it: why D is subtracted"), trialControls(row, masked, labels.key, show), said));
  }
}

/** Weights, their gradient with the line D, and the weight times how far it is from that line. */
function softmaxBars({labels, attention, state}, row, masked, known) {
  const most = [0.1, 0.2, 0.5, 1].find((height) => Math.max(...row.A) <= height) ?? 1; // of many keys each weighs little
  const all = known === SOFTMAX_ORDER.length;
  const usual = currentResult(PLAIN).heads[state.head].dS.row(state.row); // a switch that takes dS away makes its bars small
  const line = known > 2 ? {line: row.D} : {};
  return barTable({label: `Softmax and its backward for the query ${labels.query[state.row]}`, labels: labels.key, masked, side: attention.keys,
    chosen: isTold() ? told.subject.key : largestGradient(row), columns: [
    {symbol: "A", name: "weights", values: row.A, kind: "weight", low: 0, high: most, ...(all ? {marks: afterTrial(row).A} : {})},
    ...(known > 1 ? [{symbol: "dA", name: "", values: row.dA, kind: "gradient", ...rangeOf([...row.dA, row.D]), ...line}] : []),
    ...(all ? [{symbol: "dS", name: "", values: row.dS, kind: "gradient", ...rangeOf([...row.dS, ...usual])}] : []),
  ]});
}

/** The row in words, in the order in which the backward goes: an item for each of SOFTMAX_ORDER. */
function readingOf(row, masked, {query, key}, i) {
  const special = specialRow(row, masked);
  return [
    build("li", {}, build("b", {}, "A"), ` is where the row ${query[i]} looks: ${whereItLooks(row, key)}.`),
    build("li", {}, build("b", {}, "dA"), " is what the loss would do if a key had more weight and nothing else changed: rise (orange) or fall (blue)."),
    build("li", {"data-fact": "D"}, build("b", {}, "D"), " is what this row’s weights cost on average: Σⱼ A dA = ", exactNumber(row.D),
      ". The weights sum to 1: what one key gains the others lose. So a key is compared with this average, the line, not with 0."),
    build("li", {}, ...(special ? [special] : [build("b", {}, "dS"), ...exampleOf(row, key)])),
  ];
}

/** What must hold of the row, and what the hatching means. */
function factsOfRow(row, masked) {
  return [factOfSum(row),
    ...(isRounding(row.difference, row.size) ? [] : [fact(false, "dS is not the gradient of the softmax: it differs from A∘(dA − D) by up to ", exactNumber(row.difference), ".")]),
    ...(masked.includes(true) ? [build("p", {class: "note"}, "At a masked key (hatched) dA may be anything: without weight it does not count.")] : [])];
}

function factOfSum(row) {
  const zero = isRounding(row.sum, row.size);
  const sum = fact(zero, "Σⱼ dS = ", exactNumber(row.sum), zero ? ", which is 0 but for rounding" : ", which must be 0",
    ": adding one number to all the scores of a row changes no weight.");
  sum.dataset.fact = "sum";
  return sum;
}

/** "60 % at “m”, 10 % at “r₁”": the two largest weights. */
function whereItLooks({A}, key) {
  const order = [...A.keys()].sort((a, b) => A[b] - A[a]).slice(0, 2).filter((j) => A[j] > 0.005);
  return order.map((j) => `${Math.round(100 * A[j])} % at “${key[j]}”`).join(", ") || "nowhere";
}

/** The key with the largest |dS|, by its numbers. */
function exampleOf(row, key) {
  const {A, dA, dS, D} = row;
  const j = largestGradient(row);
  const above = dA[j] > D;
  const number = (value) => (value < 0 ? `(${formatNumber(value, 3)})` : formatNumber(value, 3));
  return [` = A·(dA − D). At “${key[j]}” that is ${formatNumber(A[j], 3)} · (${formatNumber(dA[j], 3)} − ${number(D)}) = `,
    build("b", {class: "number"}, formatNumber(dS[j], 3)), `: its dA is ${above ? "above" : "below"} the line, so gradient descent `,
    `${above ? "lowers" : "raises"} its score. A key with hardly any weight gets hardly any gradient.`];
}

const largestGradient = ({dS}) => dS.reduce((best, x, j) => (Math.abs(x) > Math.abs(dS[best]) ? j : best), 0);

/** What there is to say where there is no gradient. */
function specialRow({A, size}, masked) {
  const seen = masked.filter((is) => !is).length;
  if (seen === 0) return "This query may attend to nothing: no weight, no gradient.";
  if (seen === 1) return "This query sees one key: its weight is 1 whatever the score, so dA − D and dS are 0.";
  if (size === 0) return "No gradient reaches this query: the loss does not depend on its output.";
  if (Math.max(...A) > 0.999) return "One weight is nearly 1: D is nearly its dA, and hardly any gradient gets through.";
  return null;
}

/** The weights after one score is raised, and the change of the loss that dA gives for them. */
function afterTrial(row) {
  const key = Math.min(trial.key ?? largestGradient(row), row.A.length - 1);
  const factor = Math.exp(trial.by), whole = 1 + row.A[key] * (factor - 1);
  const A = row.A.map((a, j) => (j === key ? a * factor : a) / whole);
  return {key, A, change: A.reduce((sum, a, j) => sum + row.dA[j] * (a - row.A[j]), 0)};
}

function trialControls(row, masked, key, show) {
  const choice = build("select", {id: "trial-key", "data-key": "softmax:trial", onchange: (event) => {
    trial.key = Number(event.target.value);
    show();
  }}, ...[...key.keys()].filter((j) => !masked[j]).map((j) => build("option", {value: j}, key[j])));
  choice.value = String(afterTrial(row).key);
  const slider = build("input", {type: "range", id: "trial-by", min: -2, max: 2, step: 0.1, value: trial.by, "data-key": "softmax:by",
    oninput: (event) => {
      trial.by = Number(event.target.value);
      show();
    }});
  return build("div", {class: "panel-controls"}, build("label", {for: "trial-key"}, "Raise the score of"), choice,
    build("label", {for: "trial-by"}, "by"), slider);
}

/** What the raised score does, beside what dS says of it, and what would be said without D. */
function trialInWords(row, keys) {
  const {key, A, change} = afterTrial(row);
  const {by} = trial;
  const gain = A[key] - row.A[key];
  const line = (name, value, words) => build("p", {class: "trial-line"}, build("span", {class: "which"}, name),
    build("b", {class: "number", "data-value": value}, formatNumber(value, 3)), build("span", {}, words));
  return [
    build("p", {}, `Score of “${keys[key]}” ${by < 0 ? "−" : "+"}${Math.abs(by).toFixed(1)}: its weight ${gain < 0 ? "falls" : "rises"} by `
      + `${formatNumber(Math.abs(gain), 2)}, and the others ${gain < 0 ? "gain" : "lose"} as much (the marks on A).`),
    line("the loss changes by", change, "by all the weights that moved: Σⱼ dA ΔA"),
    line("dS says", row.A[key] * (row.dA[key] - row.D) * by, "A·(dA − D) times the step; the smaller the step, the closer"),
    line("without − D", row.A[key] * row.dA[key] * by, "A·dA times the step: what the other keys lose is forgotten"),
  ];
}

PANELS.push({id: "softmax", title: "Softmax", kinds: ["attention"], render: renderSoftmax});
