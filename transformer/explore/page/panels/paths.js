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
 * How the gradient of x splits: {parts: {residual, dXq, …}: T×D each, total, engine, difference, known}.
 *
 * `engine` is what the engine found for x, null if there is no residual connection; `difference` the largest between
 * it and `total`, the sum of the parts; `known` whether the residual's part was computed, and is not only what is left.
 */
function splitOfStream(view) {
  const {page, session, state, place, attention, result: {shared, problem}} = view;
  const own = problem.selfAttention ? ["dXq", "dXk", "dXv"] : ["dXq"]; // the others go to the memory
  const paths = Object.fromEntries(own.map((path) => [path, shared[path]]));
  if (session) return splitOfLiveStream(view, paths);
  const {residual} = attention;
  if (residual === null) return {parts: paths, total: addAll(Object.values(paths)), engine: null, difference: 0, known: true};
  const of = (array) => array.matrix(state.item);
  const [stream, engine, above] = [of(residual.stream), of(residual.gradStream), of(residual.gradResult)];
  const back = (gradient, x) => throughNorm(gradient, x, residual.weight.matrix(), residual.eps);
  let parts, known = true;
  if (residual.norm === "pre") {
    parts = {residual: above};
    for (const path of own) parts[path] = back(paths[path], stream);
  } else {
    const asMade = compute(page, place.attention, state.item); // the engine's dout belongs to the output without changes
    const dz = back(above, addMatrices(stream, asMade.shared.Y));
    // Y is added to x as it is, so dY is dz too; unless a dropout lies between, whose mask is not in the page.
    known = isRounding(largestDifference(dz, asMade.shared.G), ROUNDING_OF_NORMS * largestOf(dz));
    const rest = combine(engine, addAll(Object.values(paths)), (a, b) => a - b);
    parts = {residual: known ? dz : rest, ...paths};
  }
  const total = addAll(Object.values(parts));
  return {parts, total, engine, difference: largestDifference(total, engine), known};
}

/** In the live model the places before and after know what comes back along the stream; nothing of it was left out. */
function splitOfLiveStream({place: {path}, run: {places, order}}, paths) {
  const [sum, norm] = [places.get(`${path}_residual`), places.get(`${path}_residual.norm`)];
  const isFirst = (at) => order.indexOf(at) < order.indexOf(path);
  const back = (gradient) => throughNorm(gradient, norm.shared.X, norm.shared.w, norm.problem.eps);
  const sent = isFirst(norm.path) ? Object.fromEntries(Object.entries(paths).map(([way, gradient]) => [way, back(gradient)])) : paths;
  const parts = {residual: sum.shared.dX, ...sent};
  const readsStream = isFirst(norm.path) ? norm.path : path; // the place before it made x
  const engine = places.get(order[order.indexOf(readsStream) - 1]).shared.dY;
  const total = addAll(Object.values(parts));
  return {parts, total, engine, difference: largestDifference(total, engine), known: true};
}

/** "pre", "post", or null where no residual connection is around the attention. */
function normOfStream({session, place: {path}, run, attention}) {
  if (!session) return attention.residual?.norm ?? null;
  return run.order.indexOf(`${path}_residual.norm`) < run.order.indexOf(path) ? "pre" : "post";
}

function renderPaths(container, view) {
  const {attention, result: {shared, problem}} = view;
  const split = splitOfStream(view);
  const symbol = split.engine === null ? "dX" : "dx";
  container.append(formulasOfPaths(problem, normOfStream(view)), build("div", {class: "side-by-side"},
    build("div", {}, shareTable(split.parts, split.total, symbol), verdictOnPaths(view, split)),
    normBars(view, "query", "stream", split.parts, split.total, symbol)));
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
  if (norm === null) return forwardAndBack(`Y = ${attention}`, `dX = ${inside}`);
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

/** Do the parts sum to what the engine found? */
function verdictOnPaths(view, {engine, difference, known}) {
  if (engine === null) return build("p", {}, "No residual connection is around this attention: these paths are all.");
  if (!known) {
    return build("p", {}, "A dropout lies between the attention and the sum, and its mask is not in this page: the residual's ",
      "part is what the other paths leave of the engine's gradient, so there is nothing to compare.");
  }
  const adds = isRounding(difference, ROUNDING_OF_NORMS * largestOf(engine));
  const changes = changesOf(view);
  const since = changes === "" || view.session ? "." : `. That was found for the page as it was made; since then ${changes}.`;
  const says = [adds ? "The parts sum" : "The parts do not sum", view.session ? " to the gradient of x that the place before gets; the largest "
    : " to the gradient of x that the engine found; the largest ", "difference is ", exactNumber(difference), since];
  const wrong = !adds && (changes === "" || view.session !== null || view.state.broken !== null); // a switch computes something else, rightly
  const verdict = adds || wrong ? fact(adds, ...says) : build("p", {}, ...says);
  verdict.dataset.fact = "paths";
  return verdict;
}

PANELS.push({id: "paths", title: "Paths", kinds: ["attention"], whole: true, render: renderPaths});
