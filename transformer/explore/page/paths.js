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

/** The backward of the layer norm at its input x (T×D), for the gradient g of its output. */
function layerNormBackward(g, x, weight, eps) {
  const out = new Matrix(x.rows, x.cols);
  const mean = (terms) => terms.reduce((sum, term) => sum + term, 0) / x.cols;
  for (let i = 0; i < x.rows; i++) {
    const row = Array.from(x.row(i));
    const centre = mean(row);
    const rstd = 1 / Math.sqrt(mean(row.map((value) => (value - centre) ** 2)) + eps);
    const normalized = row.map((value) => (value - centre) * rstd);
    // forward: y = x̂ · weight + bias      so here: dx̂ = dy · weight
    const dNormalized = Array.from(g.row(i), (value, d) => value * (weight === null ? 1 : weight.data[d]));
    // forward: x̂ = (x − mean) · rstd      so here: dx = rstd · (dx̂ − mean(dx̂) − x̂ mean(dx̂ · x̂))
    const throughMean = mean(dNormalized);
    const throughRstd = mean(dNormalized.map((value, d) => value * normalized[d]));
    out.row(i).set(dNormalized.map((value, d) => rstd * (value - throughMean - normalized[d] * throughRstd)));
  }
  return out;
}

/**
 * How the gradient of x splits: {parts: {residual, dXq, …}: T×D each, total, engine, difference, known}.
 *
 * `engine` is what the engine found for x, null if there is no residual connection; `difference` the largest between
 * it and `total`, the sum of the parts; `known` whether the residual's part was computed, and is not only what is left.
 */
function splitOfStream({page, state, attention, result: {shared}}) {
  const own = attention.m === null ? ["dXq", "dXk", "dXv"] : ["dXq"]; // the others go to the memory
  const paths = Object.fromEntries(own.map((path) => [path, shared[path]]));
  const {residual} = attention;
  if (residual === null) return {parts: paths, total: addAll(Object.values(paths)), engine: null, difference: 0, known: true};
  const of = (array) => array.matrix(state.item);
  const [stream, engine, above] = [of(residual.stream), of(residual.gradStream), of(residual.gradResult)];
  const throughNorm = (gradient, x) => layerNormBackward(gradient, x, residual.weight, residual.eps);
  let parts, known = true;
  if (residual.norm === "pre") {
    parts = {residual: above};
    for (const path of own) parts[path] = throughNorm(paths[path], stream);
  } else {
    const asMade = compute(page, state.attention, state.item); // the engine's dout belongs to the output without changes
    const dz = throughNorm(above, addMatrices(stream, asMade.shared.Y));
    // Y is added to x as it is, so dY is dz too; unless a dropout lies between, whose mask is not in the page.
    known = isRounding(largestDifference(dz, asMade.shared.G), ROUNDING_OF_NORMS * largestOf(dz));
    const rest = combine(engine, addAll(Object.values(paths)), (a, b) => a - b);
    parts = {residual: known ? dz : rest, ...paths};
  }
  const total = addAll(Object.values(parts));
  return {parts, total, engine, difference: largestDifference(total, engine), known};
}

function renderPaths(container, view) {
  const {attention, labels, result: {shared}} = view;
  const split = splitOfStream(view);
  const symbol = split.engine === null ? "dX" : "dx";
  container.append(formulasOfPaths(attention), build("div", {class: "side-by-side"},
    build("div", {}, shareTable(split.parts, split.total, symbol), verdictOnPaths(view, split)),
    normBars("stream", split.parts, split.total, labels.query, symbol)));
  if (attention.m === null) return;
  const toMemory = {dXk: shared.dXk, dXv: shared.dXv};
  container.append(build("h3", {}, `To the memory: the ${attention.keys} tokens`),
    build("p", {}, "In cross-attention the keys and the values are made of M, not of X: what flows through them goes to ",
      "the memory, on top of what the other layers send it."),
    build("div", {class: "side-by-side"}, shareTable(toMemory, shared.dM, "dM"),
      normBars("memory", toMemory, shared.dM, labels.key, "dM")));
}

function formulasOfPaths({m, residual}) {
  const inside = m === null ? "dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ" : "dQ W_Qᵀ";
  const attention = m === null ? "attention(X)" : "attention(X, M)";
  if (residual === null) return forwardAndBack(`Y = ${attention}`, `dX = ${inside}`);
  if (residual.norm === "pre") {
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

function normBars(of, parts, total, labels, symbol) {
  const rows = Object.entries(parts).map(([path, matrix]) => ({id: path, ...PATHS[path], values: norms(matrix)}));
  return barTable({label: `Norm of the gradient of each token of the ${of}, by path`, labels,
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
  const since = changes === "" ? "." : `. That was found for the page as it was made; since then ${changes}.`;
  const says = [adds ? "The parts sum" : "The parts do not sum", " to the gradient of x that the engine found; the largest ",
    "difference is ", exactNumber(difference), since];
  const wrong = !adds && (changes === "" || view.state.broken !== null); // a switch computes something else, rightly
  const verdict = adds || wrong ? fact(adds, ...says) : build("p", {}, ...says);
  verdict.dataset.fact = "paths";
  return verdict;
}

PANELS.push({id: "paths", title: "Paths", whole: true, render: renderPaths});
