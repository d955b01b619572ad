"use strict";
// The flow panel: which query token sends gradient to which key token. In cross-attention: which target token to which
// source token.
//
//   forward: Kⱼ = Mⱼ W_K + b_K, Vⱼ = Mⱼ W_V + b_V     so here: dMⱼ = dKⱼ W_Kᵀ + dVⱼ W_Vᵀ, summed over the heads
//   forward: Rᵢⱼ = Qᵢ·Kⱼ, Oᵢ = Σⱼ A′ᵢⱼ Vⱼ             so here: dKⱼ = Σᵢ dRᵢⱼ Qᵢ,  dVⱼ = Σᵢ A′ᵢⱼ dOᵢ
//
// Both are sums over the queries, so dMⱼ is a sum of vectors, one for each query i: through the key dRᵢⱼ Qᵢ W_Kᵀ, through
// the value A′ᵢⱼ dOᵢ W_Vᵀ.

const flowChoice = {heads: "all", through: "both"}; // the panel's own choices
const flows = new WeakMap(); // by the heads that they are of: choosing a token computes none anew
const THINNEST = 0.02; // of the widest line: what is less is not drawn
const MOST_LINES = 300; // of other tokens than the chosen one: more would be a blot

/** T×D matrices of the vectors that query i sends, before the factor of key j: {factor: T×S, vectors: T×D} of each head. */
function sentBy(head) {
  return {
    keys: {factor: head.dR, vectors: matmul(head.Q, transpose(head.WK))},
    values: {factor: head.Ad, vectors: matmul(head.dO, transpose(head.WV))},
  };
}

/**
 * How the gradient of the memory comes about: T×S matrices of norms, `keys`, `values` and `both` (of the sum of the two
 * vectors); `total`, what each key token gets, S×D; `sumOfNorms` of all that is sent to each, S numbers.
 */
function flowOf(heads) {
  const sent = heads.map(sentBy);
  const [rows, cols] = [heads[0].A.rows, heads[0].A.cols];
  const width = sent[0].keys.vectors.cols;
  const total = new Matrix(cols, width);
  const flow = {keys: new Matrix(rows, cols), values: new Matrix(rows, cols), both: new Matrix(rows, cols), total,
    sumOfNorms: new Array(cols).fill(0)};
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) {
      const [keys, values] = [new Float64Array(width), new Float64Array(width)];
      for (const parts of sent) {
        addScaled(keys, parts.keys.factor.at(i, j), parts.keys.vectors.row(i));
        addScaled(values, parts.values.factor.at(i, j), parts.values.vectors.row(i));
      }
      const both = keys.map((x, d) => x + values[d]);
      addScaled(total.row(j), 1, both);
      flow.keys.set(i, j, lengthOf(keys));
      flow.values.set(i, j, lengthOf(values));
      flow.both.set(i, j, lengthOf(both));
      flow.sumOfNorms[j] += flow.both.at(i, j);
    }
  }
  return flow;
}

/** sum += factor · vector */
function addScaled(sum, factor, vector) {
  if (factor === 0) return;
  for (let d = 0; d < sum.length; d++) sum[d] += factor * vector[d];
}

/** What the backward pass of the page gives the memory, through keys and values, from these heads. */
const throughKeysAndValues = (heads) => addAll(heads.flatMap((head) => [head.dXk, head.dXv]));

const THROUGH = [["both", "keys and values"], ["keys", "keys"], ["values", "values"]];

function renderFlow(container, view) {
  const {state, attention, result, labels} = view;
  const heads = flowChoice.heads === "all" ? result.heads : [view.head];
  const key = flowChoice.heads === "all" ? heads : view.head;
  if (!flows.has(key)) flows.set(key, flowOf(heads));
  const flow = flows.get(key);
  const memory = attention.m === null ? "dX" : "dM";
  const few = labels.query.length * labels.key.length <= MOST_LINES;
  container.append(
    forwardAndBack("K = M W_K + b_K, V = M W_V + b_V; R = Q Kᵀ, O = A′ V",
      `${memory}ⱼ = Σᵢ (dRᵢⱼ Qᵢ W_Kᵀ + A′ᵢⱼ dOᵢ W_Vᵀ)${attention.m === null ? ", besides what comes through the queries" : ""}`),
    build("p", {}, `Each ${attention.queries} token i sends one vector of gradient to each ${attention.keys} token j, through its key ` +
      `and through its value. Shown is the norm of that vector.${few ? "" : ` Drawn are the lines of the chosen token and the ${MOST_LINES} ` +
        "strongest of the others."}`),
    build("div", {class: "panel-controls"},
      segments("Heads", "flow-heads", [["all", "all"], ["one", `only ${state.head}`]], flowChoice.heads, (heads) => choose({heads})),
      segments("Through", "flow-through", THROUGH, flowChoice.through, (through) => choose({through}))),
    build("div", {class: "side-by-side"}, build("div", {class: "flow-picture"}, flowLines(flow[flowChoice.through], view)),
      build("div", {class: "reading"}, flowWords(flow, view), arrivals(flow, view, memory),
        flowVerdict(flow, throughKeysAndValues(heads), memory))),
    build("h3", {}, "The same in numbers"), flowGrids(flow, view));

  function choose(changes) {
    Object.assign(flowChoice, changes);
    setState({});
  }
}

/** Two columns of tokens and lines between them, as wide as the norm. */
function flowLines(matrix, {state, labels, attention}) {
  const [step, left, right] = [Math.max(matrix.rows, matrix.cols) > 20 ? 18 : 30, 130, 290];
  const y = (n) => 46 + step * n;
  const most = extent(matrix);
  const lines = [];
  for (let i = 0; i < matrix.rows; i++) {
    for (let j = 0; j < matrix.cols; j++) {
      const share = most > 0 ? matrix.at(i, j) / most : 0;
      if (share < THINNEST) continue;
      lines.push({i, j, share, element: inSvg("path", {d: `M ${left} ${y(i)} C 210 ${y(i)} 210 ${y(j)} ${right} ${y(j)}`,
        class: i === state.row ? "line chosen" : "line", "stroke-width": share * step / 3, "data-value": matrix.at(i, j)},
      inSvg("title", {}, `${labels.query[i]} to ${labels.key[j]}: ${formatNumber(matrix.at(i, j))}`))});
    }
  }
  const chosen = lines.filter(({i}) => i === state.row);
  const others = lines.filter(({i}) => i !== state.row).sort((a, b) => a.share - b.share).slice(-MOST_LINES);
  const label = (text, x, n, end, more) => inSvg("text", {x, y: y(n), class: "token", "text-anchor": end, "dominant-baseline": "middle", ...more}, shorten(text));
  const queries = labels.query.map((text, i) => label(text, left - 8, i, "end", {
    class: i === state.row ? "token chosen" : "token", tabindex: "0", role: "button", "aria-pressed": String(i === state.row),
    "aria-label": `${text}: show what it sends`, "data-key": `flow:row:${i}`, onclick: () => setState({row: i}),
    onkeydown: (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); setState({row: i}); }
    }}));
  const keys = labels.key.map((text, j) => label(text, right + 8, j, "start"));
  const height = y(Math.max(matrix.rows, matrix.cols)) - 10;
  return inSvg("svg", {class: "flow-lines", viewBox: `0 0 420 ${height}`, role: "group",
    "aria-label": `The strongest gradients from ${attention.queries} tokens to ${attention.keys} tokens; all are in the tables below`},
  inSvg("text", {x: left - 8, y: 18, "text-anchor": "end", class: "side"}, `from ${attention.queries} (query)`),
  inSvg("text", {x: right + 8, y: 18, class: "side"}, `to ${attention.keys} (key)`), ...[...others, ...chosen].map((line) => line.element), ...queries, ...keys);
}

function inSvg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const shorten = (text) => ([...text].length > 14 ? `${[...text].slice(0, 13).join("")}…` : text);

/** What the chosen query sends, largest first, in words. */
function flowWords({keys, values, both}, {state, labels}) {
  const i = state.row;
  const order = labels.key.map((_, j) => j).sort((a, b) => both.at(i, b) - both.at(i, a)).filter((j) => both.at(i, j) > 0);
  const rows = order.slice(0, 6).map((j) => build("tr", {}, build("th", {scope: "row"}, labels.key[j]),
    ...[both, keys, values].map((matrix) => build("td", {"data-value": matrix.at(i, j)}, formatNumber(matrix.at(i, j), 3)))));
  if (rows.length === 0) return build("p", {class: "flow-words"}, `“${labels.query[i]}” sends nothing: no gradient reaches its output.`);
  const head = ["to", "in all", "key", "value"].map((text) => build("th", {scope: "col"}, text));
  return build("table", {class: "flow-words"}, build("caption", {}, `What “${labels.query[i]}” sends`,
    order.length > 6 ? `: the largest 6 of ${order.length}` : ""), build("thead", {}, build("tr", {}, ...head)), build("tbody", {}, ...rows));
}

function flowGrids(flow, {labels, mask}) {
  const scale = Math.max(extent(flow.keys), extent(flow.values), extent(flow.both));
  const titles = {keys: "‖dRᵢⱼ Qᵢ W_Kᵀ‖, through keys", values: "‖A′ᵢⱼ dOᵢ W_Vᵀ‖, through values", both: "norm of their sum"};
  const grids = Object.entries(titles).map(([name, caption]) => {
    const figure = grid(flow[name], {name: `flow ${name}`, kind: "gradient", rowLabels: labels.query, colLabels: labels.key, mask, scale,
      caption: build("span", {}, ...withSubscripts(caption)), onCell: (row) => setState({row})});
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

/** What is sent to each key token, and what is left of it when the vectors are added. */
function arrivals({total, sumOfNorms}, {labels, attention}, memory) {
  return barTable({label: `What arrives at each ${attention.keys} token`, columns: labels.key.map((label) => ({label, masked: false})),
    rows: normRows([{symbol: "sent", name: "sum of the norms", values: sumOfNorms},
      {symbol: `${memory}ⱼ`, id: "arrived", name: "norm of the sum", values: norms(total)}])});
}

function flowVerdict({total}, expected, memory) {
  const difference = largestDifference(total, expected);
  const same = isRounding(difference, 1e2 * largestOf(expected));
  const verdict = fact(same, same ? "The vectors sum to " : "The vectors do not sum to ",
    `${memory} through keys and values; the largest difference is `, exactNumber(difference),
    ". Where the lower bar is much shorter than the upper one, the queries pull in different directions.");
  verdict.dataset.fact = "flow";
  return verdict;
}

PANELS.push({id: "flow", title: "Flow", render: renderFlow});
