"use strict";
// The paths panel: the gradient of x, the stream that a residual connection carries past the attention, is a sum of
// what comes back along the residual and through the queries, the keys and the values.
//
//   forward (pre-norm):  out = x + attention(norm(x))           so here: dx = dout + norm′(dXq + dXk + dXv)
//   forward (post-norm): out = norm(z), z = x + attention(x)    so here: dx = dz + dXq + dXk + dXv, dz = norm′(dout)
//
// norm′ is the backward of the layer norm: linear, so each path can be sent through it alone.

const PATHS = {
  residual: {symbol: "residual", name: "past the attention"},
  dXq: {symbol: "dQ W_Qᵀ", name: "through the queries"},
  dXk: {symbol: "dK W_Kᵀ", name: "through the keys"},
  dXv: {symbol: "dV W_Vᵀ", name: "through the values"},
};
const ROUNDING_OF_NORMS = 1e3; // a layer norm divides by a deviation, which makes rounding larger

/** What comes back through the layer norm of x (T×D), for the gradient of its output; its bias has no part in it. */
function throughNorm(gradient, x, weight, eps) {
  const tape = new Tape(), input = tape.leaf(x);
  tape.backward(runNorm(tape, {shared: {}}, {X: input, w: tape.leaf(weight), b: null}, eps), gradient);
  return input.gradient;
}

/**
 * How the gradient of x splits: {parts: {residual, dXq, …}: T×D each, total, engine, difference}.
 *
 * `engine` is what comes back to the place that made x, `difference` the largest between it and `total`, the sum of the
 * parts.
 */
function splitOfStream(view) {
  const {place: {path}, run: {places, order}, result: {shared, problem}} = view;
  const own = problem.selfAttention ? ["dXq", "dXk", "dXv"] : ["dXq"]; // the others go to the memory
  const [sum, norm] = [places.get(`${path}_residual`), places.get(`${path}_residual.norm`)];
  const isPre = normOfStream(view) === "pre";
  const back = (gradient) => (isPre ? throughNorm(gradient, norm.shared.X, norm.shared.w, norm.problem.eps) : gradient);
  const parts = {residual: sum.shared.dX, ...Object.fromEntries(own.map((way) => [way, back(shared[way])]))};
  const readsStream = isPre ? norm.path : path; // the place before it made x
  const engine = places.get(order[order.indexOf(readsStream) - 1]).shared.dY;
  const total = addAll(Object.values(parts));
  return {parts, total, engine, difference: largestDifference(total, engine)};
}

const normOfStream = ({place: {path}, run: {order}}) => (
  order.indexOf(`${path}_residual.norm`) < order.indexOf(path) ? "pre" : "post");

function renderPaths(container, view) {
  const {attention, result: {shared, problem}} = view;
  const split = splitOfStream(view);
  container.append(formulasOfPaths(problem, normOfStream(view)), build("div", {class: "side-by-side"},
    build("div", {}, shareTable(split.parts, split.total, "dx"), verdictOnPaths(split)),
    normBars(view, "query", "stream", split.parts, split.total, "dx")));
  if (problem.selfAttention) return;
  const toMemory = {dXk: shared.dXk, dXv: shared.dXv};
  container.append(build("h3", {}, `To the memory: the ${attention.keys} tokens`),
    build("p", {}, "In cross-attention the keys and the values are made of M, not of X: what flows through them goes to ",
      "the memory, on top of what the other layers send it."),
    build("div", {class: "side-by-side"}, shareTable(toMemory, shared.dM, "dM"),
      normBars(view, "key", "memory", toMemory, shared.dM, "dM")));
}

function formulasOfPaths({selfAttention}, norm) {
  const inside = selfAttention ? "dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ" : "dQ W_Qᵀ";
  const attention = selfAttention ? "attention(X)" : "attention(X, M)";
  if (norm === "pre") {
    return forwardAndBack(`out = x + ${attention}, X = norm(x)`,
      `dx = dout + norm′(${inside}), where norm′ is the backward of the layer norm`);
  }
  return forwardAndBack(`out = norm(z), z = x + ${attention}, X = x`,
    `dx = dz + ${inside}, where dz = norm′(dout) and norm′ is the backward of the layer norm`);
}

/** Each path's norm and its share: its part of the total along the total, so that the shares sum to 100 %. */
function shareTable(parts, total, symbol) {
  const whole = innerProduct(total, total);
  const largest = Math.max(...Object.values(parts).map(normOf), normOf(total));
  const line = (path, {symbol: letter, name}, matrix) => {
    const [norm, share] = [normOf(matrix), whole > 0 ? innerProduct(matrix, total) / whole : 0];
    const bar = build("span", {class: "length", style: `width: ${largest > 0 ? (100 * norm) / largest : 0}%`});
    return build("tr", {"data-path": path},
      build("th", {scope: "row"}, build("b", {}, ...withSubscripts(letter)), " ", build("span", {}, name)),
      build("td", {class: "length-box"}, bar), build("td", {"data-value": norm}, formatNumber(norm)),
      build("td", {"data-value": share}, `${formatNumber(100 * share, 3)} %`));
  };
  const head = [build("th", {scope: "col", colspan: "2"}, "path"), headCell("norm"), headCell("share")];
  head[2].title = "⟨part, total⟩ / ⟨total, total⟩: negative where a path pulls against the total";
  const rows = Object.entries(parts).map(([path, matrix]) => line(path, PATHS[path], matrix));
  const table = tableOf({class: "shares"}, head, [...rows, line(symbol, {symbol, name: "in all"}, total)]);
  table.prepend(build("caption", {}, `${symbol} by path, all heads. Norms do not add up, the shares do: the part of each `,
    "path that lies along the total."));
  return table;
}

function normBars(view, axis, of, parts, total, symbol) {
  const rows = Object.entries(parts).map(([path, matrix]) => ({id: path, ...PATHS[path], values: norms(matrix)}));
  return barTable({label: `Norm of the gradient of each token of the ${of}, by path`, labels: view.labels[axis], side: sideOfAxis(view, axis),
    rows: normRows([...rows, {symbol, name: "in all", values: norms(total)}])});
}

/** Do the parts sum to what the place before gets? */
function verdictOnPaths({engine, difference}) {
  const adds = isRounding(difference, ROUNDING_OF_NORMS * largestOf(engine));
  const verdict = fact(adds, adds ? "The parts sum" : "The parts do not sum",
    " to the gradient of x that the place before gets; the largest difference is ", exactNumber(difference), ".");
  verdict.dataset.fact = "paths";
  return verdict;
}

PANELS.push({id: "paths", title: "Paths", kinds: ["attention"], render: renderPaths});
