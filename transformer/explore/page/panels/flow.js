"use strict";
// The view of the flow: which query token sends gradient to which key token; in cross-attention, which target token to which
// source token. The lines of the chosen query stand out.
//
//   forward: Kⱼ = Mⱼ W_K + b_K, Vⱼ = Mⱼ W_V + b_V    so here: dMⱼ = dKⱼ W_Kᵀ + dVⱼ W_Vᵀ, summed over the heads
//   forward: Rᵢⱼ = Qᵢ·Kⱼ, Oᵢ = Σⱼ Aᵢⱼ Vⱼ            so here: dKⱼ = Σᵢ dRᵢⱼ Qᵢ,  dVⱼ = Σᵢ Aᵢⱼ dOᵢ
//
// So dMⱼ is a sum of vectors, one for each query i: dRᵢⱼ Qᵢ W_Kᵀ through the key, Aᵢⱼ dOᵢ W_Vᵀ through the value.

const THINNEST = 0.02; // of the widest line: what is less is not drawn
const MOST_LINES = 300; // of other tokens than the chosen one: more would be a blot
const [LEFT, RIGHT, LINE_HEIGHT] = [125, 275, 24]; // where the lines begin and end, and the height of a token
const flows = new WeakMap(); // by result: choosing a token computes none anew

/** What the queries of a head send, [factor for each pair (T×S), vector for each query (T×D)]: through the keys, and the values. */
const sentBy = ({A, Q, WK, WV, dO, dR}) => [[dR, matmul(Q, transpose(WK))], [A, matmul(dO, transpose(WV))]];

/** T×S matrices of norms of what is sent, through the keys, through the values, and of the sum of the two vectors. */
function flowOf(heads) {
  const ways = heads.map(sentBy), {rows, cols} = heads[0].A;
  const norm = (parts) => makeMatrix(rows, cols, (i, j) => (
    lengthOf(Array.from(parts[0][1].row(0), (_, d) => parts.reduce((sum, [factor, vectors]) => sum + factor.at(i, j) * vectors.at(i, d), 0)))));
  const [keys, values] = [0, 1].map((way) => norm(ways.map((sent) => sent[way])));
  return {keys, values, both: norm(ways.flat())};
}

function renderFlow(container, view) {
  const {attention, result, labels, state: {row}} = view;
  if (!flows.has(result)) flows.set(result, flowOf(result.heads));
  const flow = flows.get(result), memory = result.problem.selfAttention ? "dX" : "dM", sent = Array.from(sumOfRows(flow.both).data);
  const arrived = norms(addAll(result.heads.flatMap((head) => [head.dXk, head.dXv])));
  const bars = (label, high, columns) => [build("h3", {}, label), barTable({label, labels: labels.key, side: attention.keys,
    columns: columns.map(([symbol, name, values, id]) => ({symbol, name, values, id, kind: "gradient", low: 0, high}))})];
  container.append(
    build("p", {}, `Each ${attention.queries} token i sends one vector of gradient to each ${attention.keys} token j: dRᵢⱼ Qᵢ `, ...withSubscripts("W_Kᵀ"),
      " through its key and Aᵢⱼ dOᵢ ", ...withSubscripts("W_Vᵀ"), " through its value, in every head. The lines are the norms of their sum."),
    flowPicture(flow.both, view),
    ...bars(`What “${labels.query[row]}” sends`, extent(flow.both), ["both", "keys", "values"].map((way) => [way, "", Array.from(flow[way].row(row))])),
    ...bars(`What arrives at each ${attention.keys} token`, Math.max(...sent),
      [["sent", "sum of norms", sent], [`${memory}ⱼ`, "norm of the sum", arrived, "arrived"]]),
    build("p", {class: "note"}, "Where the right bar is much shorter than the left one, the queries pull in different directions."));
}

/** Two columns of tokens and lines between them, as wide as the norm of the gradient; a click chooses the query. */
function flowPicture(matrix, {labels, attention, state: {row}}) {
  const y = (n) => 40 + LINE_HEIGHT * n;
  const lines = flowLines(matrix, row).map(({i, j, share}) => inSvg("path", {
    d: `M ${LEFT} ${y(i)} C ${(LEFT + RIGHT) / 2} ${y(i)} ${(LEFT + RIGHT) / 2} ${y(j)} ${RIGHT} ${y(j)}`, "stroke-width": share * LINE_HEIGHT / 3,
    class: i === row ? "line chosen" : "line"}, inSvg("title", {}, `${labels.query[i]} to ${labels.key[j]}: ${formatNumber(matrix.at(i, j))}`)));
  const text = (x, height, end, content, more = {}) => inSvg("text", {x, y: height, "text-anchor": end, "dominant-baseline": "middle", ...more}, content);
  const queries = labels.query.map((token, place) => standsFor(text(LEFT - 8, y(place), "end", shorten(token),
    {class: place === row ? "query chosen" : "query", onclick: () => setState({row: place})}), {side: attention.queries, place}));
  const keys = labels.key.map((token, place) => standsFor(text(RIGHT + 8, y(place), "start", shorten(token)), {side: attention.keys, place}));
  return inSvg("svg", {class: "flow-lines", viewBox: `0 0 400 ${y(Math.max(matrix.rows, matrix.cols))}`, role: "img",
    "aria-label": `The strongest gradients from ${attention.queries} tokens to ${attention.keys} tokens`},
  text(LEFT - 8, 12, "end", attention.queries, {class: "side"}), text(RIGHT + 8, 12, "start", attention.keys, {class: "side"}), ...lines, ...queries, ...keys);
}

/** [{i, j, share of the widest}]: those of the chosen query last, so that they lie on top. */
function flowLines(matrix, row) {
  const most = extent(matrix), lines = [];
  for (let i = 0; i < matrix.rows; i++) {
    for (let j = 0; j < matrix.cols; j++) {
      const share = most > 0 ? matrix.at(i, j) / most : 0;
      if (share >= THINNEST) lines.push({i, j, share});
    }
  }
  const others = lines.filter(({i}) => i !== row).sort((a, b) => a.share - b.share).slice(-MOST_LINES);
  return [...others, ...lines.filter(({i}) => i === row)];
}

function shorten(token) {
  const letters = [...token];
  return letters.length > 14 ? `${letters.slice(0, 13).join("")}…` : token;
}

PANELS.push({id: "flow", title: "Flow", kinds: ["attention"], render: renderFlow});
