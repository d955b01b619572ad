"use strict";
// The flow panel: which query token sends gradient to which key token; in cross-attention, which target token to which
// source token. Either can be chosen: what a query sends, who sends to a key.
//
//   forward: Kⱼ = Mⱼ W_K + b_K, Vⱼ = Mⱼ W_V + b_V    so here: dMⱼ = dKⱼ W_Kᵀ + dVⱼ W_Vᵀ, summed over the heads
//   forward: Rᵢⱼ = Qᵢ·Kⱼ, Oᵢ = Σⱼ Aᵢⱼ Vⱼ            so here: dKⱼ = Σᵢ dRᵢⱼ Qᵢ,  dVⱼ = Σᵢ Aᵢⱼ dOᵢ
//
// So dMⱼ is a sum of vectors, one for each query i: dRᵢⱼ Qᵢ W_Kᵀ through the key, Aᵢⱼ dOᵢ W_Vᵀ through the value.

// The panel's own choices; `key`, a key token's place, or null: the query token of the state is chosen.
const flowChoice = {heads: "all", through: "both", key: null};
const LABELS_OF_FLOW = 110, LEAST_CELL_OF_FLOW = 10; // pixels: what stands beside the cells of a grid, and the side of a cell
const MOST_WORDS = 8; // lines of the table beside the picture
const flows = new WeakMap(); // by the heads that they are of: choosing a token computes none anew

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
  const {key} = flowChoice;
  return key !== null && key < labels.key.length ? {side: "key", place: key} : {side: "query", place: state.row};
}

function chooseToken(side, place) {
  flowChoice.key = side === "key" ? place : null;
  setState(side === "key" ? {} : {row: place});
}

function renderFlow(container, view) {
  const {state, attention, result, labels} = view;
  const heads = flowChoice.heads === "all" ? result.heads : [view.head];
  const key = flowChoice.heads === "all" ? result.heads : view.head;
  if (!flows.has(key)) flows.set(key, flowOf(heads));
  const flow = flows.get(key);
  const choose = (field) => (value) => {
    flowChoice[field] = value;
    setState({});
  };
  const chosen = chosenToken(view);
  const memory = result.problem.selfAttention ? "dX" : "dM";
  const besides = result.problem.selfAttention ? ", besides what comes through the queries" : "";
  const expected = addAll(heads.flatMap((head) => [head.dXk, head.dXv])); // by the backward pass of the page
  container.append(
    forwardAndBack(asShown(view, spelled("K = M W_K + b_K,  V = M W_V + b_V;  R = Q Kᵀ,  O = A V", result)),
      asShown(view, `${memory}ⱼ = Σᵢ (dRᵢⱼ Qᵢ W_Kᵀ + Aᵢⱼ dOᵢ W_Vᵀ)${besides}`)),
    build("p", {}, `Each ${attention.queries} token i sends one vector of gradient to each ${attention.keys} token j, `,
      "through its key and through its value. Shown is the norm of that vector. Choose a token on the left to see what ",
      "it sends, one on the right to see who sends to it."),
    build("div", {class: "panel-controls"},
      segments("Heads", "flow-heads", [["all", "all"], ["one", `only ${state.head}`]], flowChoice.heads, choose("heads")),
      segments("Through", "flow-through", [["both", "keys and values"], ["keys", "keys"], ["values", "values"]],
        flowChoice.through, choose("through"))),
    build("div", {class: "side-by-side"}, flowPicture(flow[flowChoice.through], chosen, view),
      build("div", {class: "reading"}, flowWords(flow, chosen, view), build("h3", {}, `What arrives at each ${attention.keys} token`),
        barTable({label: `What arrives at each ${attention.keys} token`, labels: labels.key, side: attention.keys, rows: normRows([
          {symbol: "sent", name: "sum of the norms", values: flow.sumOfNorms},
          {symbol: `${memory}ⱼ`, id: "arrived", name: "norm of the sum", values: norms(flow.total)}])}),
        verdictOnFlow(flow, expected, memory))),
    build("h3", {}, "The same in numbers"), flowGrids(flow, chosen, view));
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

function flowGrids(flow, {side}, view) {
  const {labels, mask} = view;
  const titles = {keys: "‖dRᵢⱼ Qᵢ W_Kᵀ‖, through keys", values: "‖Aᵢⱼ dOᵢ W_Vᵀ‖, through values",
    both: "norm of their sum"};
  const scale = Math.max(...Object.keys(titles).map((name) => extent(flow[name])));
  const room = document.getElementById("panel").clientWidth / 3 - LABELS_OF_FLOW; // for the three beside each other
  const cell = room >= LEAST_CELL_OF_FLOW * labels.key.length ? Math.min(LARGEST_CELL, Math.floor(room / labels.key.length)) : null;
  const grids = Object.entries(titles).map(([name, title]) => {
    const figure = grid(flow[name], {name: `flow ${name}`, kind: "gradient", scale, mask, rowLabels: labels.query,
      colLabels: labels.key, tokens: tokensOfTensor(view, "A"), cell, caption: build("span", {}, ...withSubscripts(title)),
      onCell: (query, key) => chooseToken(side, side === "query" ? query : key)});
    figure.dataset.flow = name;
    figure.querySelector(".legend").replaceWith(legendOfNorms(scale));
    return figure;
  });
  return build("div", {class: "multiples"}, ...grids);
}

/** The orange half of a gradient's colours: norms are not negative. */
function legendOfNorms(scale) {
  const colours = [0, 0.25, 0.5, 0.75, 1].map((share) => paint("gradient", share, 1));
  const bar = build("span", {class: "legend-bar", style: `background: linear-gradient(to right, ${colours.join(", ")})`});
  return build("span", {class: "legend", title: "One scale for the three."}, "0", bar, formatNumber(scale, 2));
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
