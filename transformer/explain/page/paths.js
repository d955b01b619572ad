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
 * it and `total`, the sum of the parts; `known` whether the residual's part was computed, and not only what is left.
 */
function splitOfStream({page, state, attention, result}) {
  const {shared} = result;
  const own = attention.m === null ? ["dXq", "dXk", "dXv"] : ["dXq"]; // the others go to the memory
  const paths = Object.fromEntries(own.map((path) => [path, shared[path]]));
  const {residual} = attention;
  if (residual === null) return {parts: paths, total: addAll(Object.values(paths)), engine: null, difference: 0, known: true};
  const [stream, engine, above] = [residual.stream, residual.gradStream, residual.gradResult].map((a) => a.matrix(state.item));
  const throughNorm = (g, x) => layerNormBackward(g, x, residual.weight, residual.eps);
  let parts;
  let known = true;
  if (residual.norm === "pre") {
    const own = Object.entries(paths).map(([path, gradient]) => [path, throughNorm(gradient, stream)]);
    parts = {residual: above, ...Object.fromEntries(own)};
  } else {
    const asMade = compute(page, state.attention, state.item, {scaling: true, masking: true, edit: null, broken: null});
    const dz = throughNorm(above, addMatrices(stream, asMade.shared.Y));
    // Y is added to x as it is, so dY is dz too; unless a dropout lies between, whose mask is not in the page.
    known = isRounding(largestDifference(dz, asMade.shared.G), 1e3 * largestOf(dz));
    parts = {residual: known ? dz : combine(engine, addAll(Object.values(paths)), (a, b) => a - b), ...paths};
  }
  const total = addAll(Object.values(parts));
  return {parts, total, engine, difference: largestDifference(total, engine), known};
}

const largestDifference = (a, b) => largestOf(combine(a, b, (x, y) => x - y));

function renderPaths(container, view) {
  const {attention, labels, result} = view;
  const split = splitOfStream(view);
  const symbol = split.engine === null ? "dX" : "dx";
  container.append(formulasOfPaths(attention), build("div", {class: "side-by-side"},
    build("div", {}, shareTable(split.parts, split.total, symbol), verdictOnPaths(view, split)),
    normBars("of the stream", split.parts, split.total, labels.query, symbol)));
  if (attention.m !== null) {
    const toMemory = {dXk: result.shared.dXk, dXv: result.shared.dXv};
    container.append(build("h3", {}, `To the memory: the ${attention.keys} tokens`),
      build("p", {}, "In cross-attention the keys and the values are made of M, not of X: what flows through them goes to the " +
        "memory, on top of what the other layers send it."),
      build("div", {class: "side-by-side"}, shareTable(toMemory, result.shared.dM, "dM"),
        normBars("of the memory", toMemory, result.shared.dM, labels.key, "dM")));
  }
}

function formulasOfPaths({m, residual}) {
  const inside = m === null ? "dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ" : "dQ W_Qᵀ";
  if (residual === null) return forwardAndBack("Q = X W_Q + b_Q, K and V likewise", `dX = ${inside}`);
  const given = m === null ? "" : ", M";
  if (residual.norm === "pre") {
    return forwardAndBack(`out = x + attention(X${given}), X = norm(x)`,
      `dx = dout + norm′(${inside}), where norm′ is the backward of the layer norm`);
  }
  return forwardAndBack(`out = norm(z), z = x + attention(X${given}), X = x`,
    `dx = dz + ${inside}, where dz = norm′(dout) and norm′ is the backward of the layer norm`);
}

/** Each path's norm and its share: its part of the total along the total, so that the shares sum to 100 %. */
function shareTable(parts, total, symbol) {
  const whole = innerProduct(total, total);
  const sizes = Object.values(parts).map(normOf);
  const largest = Math.max(...sizes, normOf(total));
  const line = (path, {symbol: name, name: description}, matrix) => {
    const [norm, share] = [normOf(matrix), whole > 0 ? innerProduct(matrix, total) / whole : 0];
    const bar = build("span", {class: "length", style: `width: ${largest > 0 ? (100 * norm) / largest : 0}%`});
    return build("tr", {"data-path": path}, build("th", {scope: "row"}, build("b", {}, ...withSubscripts(name)), " ", build("span", {}, description)),
      build("td", {class: "length-box"}, bar), build("td", {"data-value": norm}, formatNumber(norm)),
      build("td", {"data-value": share}, `${formatNumber(100 * share, 3)} %`));
  };
  const rows = Object.entries(parts).map(([path, matrix]) => line(path, PATHS[path], matrix));
  const head = build("tr", {}, build("th", {scope: "col", colspan: "2"}, "path"), build("th", {scope: "col"}, "norm"),
    build("th", {scope: "col", title: "⟨part, total⟩ / ⟨total, total⟩: negative where a path pulls against the total"}, "share"));
  return build("table", {class: "shares"}, build("caption", {}, `${symbol} by path, all heads. `,
    "Norms do not add up, the shares do: the part of each path that lies along the total."),
    build("thead", {}, head), build("tbody", {}, ...rows, line(symbol, {symbol, name: "in all"}, total)));
}

function normBars(of, parts, total, labels, symbol) {
  const rows = [...Object.entries(parts).map(([path, matrix]) => ({id: path, ...PATHS[path], values: norms(matrix)})),
    {symbol, name: "in all", values: norms(total)}];
  return barTable({label: `Norm of the gradient of each token ${of}, by path`, columns: labels.map((label) => ({label, masked: false})),
    rows: normRows(rows)});
}

/** Do the parts sum to what the engine found? */
function verdictOnPaths(view, {total, engine, difference, known}) {
  if (engine === null) return build("p", {}, "There is no residual connection around this attention: the paths are all there is.");
  if (!known) {
    return build("p", {}, "A dropout lies between the attention and the sum, and its mask is not in this page: the residual's part " +
      "is what the other paths leave of the engine's gradient, so there is nothing to compare.");
  }
  const adds = isRounding(difference, 1e3 * largestOf(engine));
  const changes = changesOf(view);
  const since = changes === "" ? "." : `. That was found for the page as it was made; since then ${changes}.`;
  const says = [adds ? "The parts sum to" : "The parts do not sum to", " the gradient of x that the engine found; the largest difference is ",
    exactNumber(difference), since];
  const moved = !adds && changes !== "" && view.state.broken === null; // another computation than the engine's, but not a wrong one
  const verdict = moved ? build("p", {}, ...says) : fact(adds, ...says);
  verdict.dataset.fact = "paths";
  return verdict;
}

PANELS.push({id: "paths", title: "Paths", render: renderPaths});
