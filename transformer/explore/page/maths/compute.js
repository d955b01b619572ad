"use strict";
// One attention of a page without a live model, computed anew from what the page knows of it, and the Result of a place.
//
// How to use:
//   compute(page, attentionIndex, item, options) -> Result
//       options  {scaling: true, masking: true,
//                 edit: null | {symbol: "Q" | "K" | "V" | "G", head, row, col, value},
//                 broken: null | a key of BREAKAGES}
//       Result   kind, path: of the place (path null: the attention stands alone)
//                heads, shared: the records of this batch item (attention.js, layers.js; a place without heads has one
//                    empty record); in them the gradients of weights and biases are sums over the batch
//                items: [{heads, shared}] of every batch item, with the item's own share of those gradients
//                mask: of head 0, a Matrix of 0 and 1 (1 = may attend), or null; heads[h].mask is that of head h
//                problem, item, edit, broken: what was computed
//                again(item, tap) -> {parts: [[G, Y]…], size}: the forward of an item anew, through one more tap. The loss
//                    is the sum of ⟨G, Y⟩ over parts and items, of terms of that size in all. For finite differences.

function compute(page, attentionIndex, item, options = {}) {
  const problem = problemOf(page.attentions[attentionIndex], options);
  const broken = breakageOf(options.broken ?? null, problem);
  const edit = options.edit
    ? {...options.edit, path: null, offset: options.edit.value - entryBefore(problem, item, options.edit)} : null;
  const [tapOfForward, tap] = [tapOfEdit(edit, item), inTurn(tapOfEdit(edit, item), tapOfMistake(broken))];
  const places = problem.items.map((_, index) => {
    const tape = new Tape(tap);
    const {place, output} = runAlone(tape, problem, index);
    tape.backward(output, place.shared.G);
    return place;
  });
  const again = (index, moved) => {
    const {place, output} = runAlone(new Tape(inTurn(tapOfForward, moved)), problem, index);
    return {parts: [[place.shared.G, output.value]], size: sizeOfProducts(place.shared.G, output.value)};
  };
  return resultOf(places, item, {edit, broken, again});
}

/** The attention of one batch item on a tape, its weights and inputs as leaves. */
function runAlone(tape, problem, item) {
  const place = placeOf(null, "attention", item, problem);
  const leafOf = (matrix) => matrix && tape.leaf(matrix);
  const leavesIn = (record) => Object.fromEntries(Object.entries(record).map(([symbol, matrix]) => [symbol, leafOf(matrix)]));
  const {X, M, G, core} = problem.items[item];
  tape.file(place.shared, "G", G); // what will arrive at the output in the backward
  const output = runAttention(tape, place, {
    X: leafOf(X), M: leafOf(M), heads: problem.heads.map(leavesIn), WO: leafOf(problem.WO), bO: leafOf(problem.bO),
    core: core && core.map(leavesIn),
  });
  return {place, output};
}

/** The Result of a place: of its records in every batch item, one of which is shown. */
function resultOf(places, item, {edit, broken, again}) {
  const {kind, path, problem, heads, shared} = places[item];
  return {
    kind, path, problem, item, edit, broken, again, items: places, mask: heads[0].mask ?? null,
    heads: heads.map((head, h) => ({...head, ...parameterGradients(places.map((place) => place.heads[h]))})),
    shared: {...shared, ...parameterGradients(places.map((place) => place.shared))},
  };
}

/** forward: every batch item uses the same W and b    so here: dW and db are the sums of the items' shares. */
function parameterGradients(records) {
  const symbols = Object.keys(records[0]).filter((symbol) => symbol.startsWith("d") && isParameter(symbol.slice(1)));
  return Object.fromEntries(symbols.map((symbol) => [symbol, addAll(records.map((record) => record[symbol]))]));
}

/** Whether all batch items have the tensor in common: the weights W, WQ, W1, …, the biases, and w of a norm. */
const isParameter = (symbol) => /^[Wbw]/.test(symbol);

const sizeOfProducts = (a, b) => timesEach(a, b).data.reduce((sum, x) => sum + Math.abs(x), 0);

/** The entry as it is without the edit. */
function entryBefore(problem, item, {symbol, head, row, col}) {
  const {heads, shared} = runAlone(new Tape(), problem, item).place;
  return (symbol === "G" ? shared : heads[head])[symbol].at(row, col);
}

/** The matrices of an attention of the page: W and b (of Q, K and V by head); X, M, G and the masks by batch item. */
function problemOf(attention, {scaling = true, masking = true} = {}) {
  const {numHeads, weights, x, m, q, k, v, g, mask, dropped} = attention;
  const ofEachHead = (make) => Array.from({length: numHeads}, (_, head) => make(head));
  // The head's rows of a weight (out, in) are its columns of W.
  const ofHead = (array, head) => {
    const width = array.shape[0] / numHeads;
    const whole = array.shape.length === 1 ? array.matrix() : transpose(array.matrix());
    return columnsOf(whole, head * width, (head + 1) * width);
  };
  const core = weights === null ? {Q: q, K: k, V: v} : {};
  const countOf = (array) => numHeads / array.shape[1]; // of the heads that share one
  return {
    kind: "attention",
    whole: weights !== null, // whether all is known, from X and M to Y
    joined: weights !== null || attention.joined,
    sharing: Object.fromEntries(Object.entries(core).map(([symbol, array]) => [symbol, countOf(array)])
      .filter(([, count]) => count > 1)),
    usualScale: attention.usualScale,
    numHeads,
    p: attention.p,
    scaling,
    scale: scaling ? attention.scale : 1,
    selfAttention: m === null,
    heads: ofEachHead((head) => {
      if (weights === null) return {};
      const {query, key, value} = weights;
      const [WQ, WK, WV] = [query, key, value].map(({weight}) => ofHead(weight, head));
      const [bQ, bK, bV] = [query, key, value].map(({bias}) => bias && ofHead(bias, head));
      return {WQ, bQ, WK, bK, WV, bV};
    }),
    WO: weights && transpose(weights.output.weight.matrix()),
    bO: weights && weights.output.bias && weights.output.bias.matrix(),
    items: Array.from({length: g.shape[0]}, (_, item) => ({
      X: x && x.matrix(item),
      M: m && m.matrix(item),
      core: weights ? null : ofEachHead((head) => Object.fromEntries(Object.entries(core).map(
        ([symbol, array]) => [symbol, array.matrix(item, Math.floor(head / countOf(array)))]))),
      G: g.matrix(item),
      masks: masking && mask ? ofEachHead((head) => mask.matrix(item, mask.shape[1] === 1 ? 0 : head)) : null,
      dropped: dropped && ofEachHead((head) => dropped.matrix(item, head)),
    })),
  };
}
