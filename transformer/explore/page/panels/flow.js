"use strict";
// The view of the flow: which query token sends gradient to which key token; in cross-attention, which target token to which
// source token. Either can be chosen: what a query sends, who sends to a key.
//
//   forward: Kⱼ = Mⱼ W_K + b_K, Vⱼ = Mⱼ W_V + b_V    so here: dMⱼ = dKⱼ W_Kᵀ + dVⱼ W_Vᵀ, summed over the heads
//   forward: Rᵢⱼ = Qᵢ·Kⱼ, Oᵢ = Σⱼ Aᵢⱼ Vⱼ            so here: dKⱼ = Σᵢ dRᵢⱼ Qᵢ,  dVⱼ = Σᵢ Aᵢⱼ dOᵢ
//
// So dMⱼ is a sum of vectors, one for each query i: dRᵢⱼ Qᵢ W_Kᵀ through the key, Aᵢⱼ dOᵢ W_Vᵀ through the value.

let flowKey = null; // the view's own choice: a key token's place; null: the query token of the state is chosen
const MOST_WORDS = 8; // lines of the table below the picture
const flows = new WeakMap(); // by result: choosing a token computes none anew

/** What the queries of a head send, as a factor for each pair (T×S) and a vector for each query (T×D). */
const sentBy = (head) => ({
  keys: {factor: head.dR, vectors: matmul(head.Q, transpose(head.WK))},
  values: {factor: head.A, vectors: matmul(head.dO, transpose(head.WV))},
});

/**
 * How the gradient of the memory comes about: T×S matrices of norms, `keys`, `values` and `both` (of the sum of the two
 * vectors); `total`, what each key token gets, S×D; `sumOfNorms` of all that is sent to each, S numbers.
 */
function flowOf(heads) {
  const sent = heads.map(sentBy);
  const {rows, cols} = heads[0].A;
  const width = sent[0].keys.vectors.cols;
  const [keys, values, both] = [1, 2, 3].map(() => new Matrix(rows, cols));
  const total = new Matrix(cols, width);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) {
      const [throughKey, throughValue] = [new Float64Array(width), new Float64Array(width)];
      for (const part of sent) {
        addScaled(throughKey, part.keys.factor.at(i, j), part.keys.vectors.row(i));
        addScaled(throughValue, part.values.factor.at(i, j), part.values.vectors.row(i));
      }
      keys.set(i, j, lengthOf(throughKey));
      values.set(i, j, lengthOf(throughValue));
      addScaled(throughKey, 1, throughValue);
      both.set(i, j, lengthOf(throughKey));
      addScaled(total.row(j), 1, throughKey);
    }
  }
  return {keys, values, both, total, sumOfNorms: Array.from(sumOfRows(both).data)};
}

/** sum += factor · vector */
function addScaled(sum, factor, vector) {
  if (factor === 0) return;
  for (let d = 0; d < sum.length; d++) sum[d] += factor * vector[d];
}

/** The token whose lines stand out: {side: "query" or "key", place}. */
function chosenToken({state, labels}) {
  return flowKey !== null && flowKey < labels.key.length ? {side: "key", place: flowKey} : {side: "query", place: state.row};
}

function chooseToken(side, place) {
  flowKey = side === "key" ? place : null;
  setState(side === "key" ? {} : {row: place});
}

function renderFlow(container, view) {
  const {attention, result, labels} = view;
  if (!flows.has(result)) flows.set(result, flowOf(result.heads));
  const flow = flows.get(result), chosen = chosenToken(view);
  const memory = result.problem.selfAttention ? "dX" : "dM";
  const expected = addAll(result.heads.flatMap((head) => [head.dXk, head.dXv])); // by the backward pass of the page
  const sizes = norms(flow.total), most = Math.max(...flow.sumOfNorms);
  const column = {kind: "gradient", low: 0, high: most};
  container.append(
    build("p", {}, `Each ${attention.queries} token i sends one vector of gradient to each ${attention.keys} token j: dRᵢⱼ Qᵢ `, ...withSubscripts("W_Kᵀ"),
      " through its key and Aᵢⱼ dOᵢ ", ...withSubscripts("W_Vᵀ"), " through its value, in every head. The lines are the norms of their sum."),
    flowPicture(flow.both, chosen, view), flowWords(flow, chosen, view), build("h3", {}, `What arrives at each ${attention.keys} token`),
    barTable({label: `What arrives at each ${attention.keys} token`, labels: labels.key, side: attention.keys, columns: [
      {symbol: "sent", name: "sum of norms", values: flow.sumOfNorms, ...column},
      {symbol: `${memory}ⱼ`, id: "arrived", name: "norm of the sum", values: sizes, ...column}]}),
    verdictOnFlow(flow, expected, memory));
}

/** What the chosen token sends, or who sends to it: largest first. */
function flowWords({keys, values, both}, {side, place}, {labels}) {
  const sends = side === "query";
  const token = labels[side][place], others = labels[sends ? "key" : "query"];
  const normOfPair = (matrix, other) => (sends ? matrix.at(place, other) : matrix.at(other, place));
  const order = [...others.keys()].filter((other) => normOfPair(both, other) > 0)
    .sort((a, b) => normOfPair(both, b) - normOfPair(both, a));
  if (order.length === 0) {
    return build("p", {}, sends ? `“${token}” sends nothing: no gradient reaches its output.`
      : `Nobody sends to “${token}”: no query that gets a gradient may attend to it.`);
  }
  const most = normOfPair(both, order[0]);
  const rows = order.slice(0, MOST_WORDS).map((other) => build("tr", {"data-place": other},
    build("th", {scope: "row"}, others[other]),
    ...[both, keys, values].map((matrix) => normOfPair(matrix, other))
      .map((norm) => build("td", {"data-value": norm}, formatNumber(norm, 3))),
    build("td", {class: "length-box"},
      build("span", {class: "length", style: `width: ${(100 * normOfPair(both, other)) / most}%`}))));
  const head = [sends ? "to" : "from", "in all", "key", "value", ""].map(headCell);
  const table = tableOf({class: "flow-words"}, head, rows);
  const some = order.length > MOST_WORDS ? `: the largest ${MOST_WORDS} of ${order.length}` : "";
  table.prepend(build("caption", {}, sends ? `What “${token}” sends${some}` : `Who sends to “${token}”${some}`));
  return table;
}

function verdictOnFlow({total}, expected, memory) {
  const difference = largestDifference(total, expected);
  const same = isRounding(difference, 100 * largestOf(expected));
  const verdict = fact(same, same ? "The vectors sum to " : "The vectors do not sum to ", memory,
    " through keys and values; the largest difference is ", exactNumber(difference),
    ". Where the lower bar is much shorter than the upper one, the queries pull in different directions.");
  verdict.dataset.fact = "flow";
  return verdict;
}

PANELS.push({id: "flow", title: "Flow", kinds: ["attention"], render: renderFlow});
