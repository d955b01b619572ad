"use strict";
// One attention of the page, computed anew: its matrices from the data, the switches, and the sums over the batch.
//
// How to use:
//   compute(page, attentionIndex, item, options) -> Result
//       options  {scaling: true, masking: true,
//                 edit: null | {symbol: "Q" | "K" | "V" | "G", head, row, col, value},
//                 broken: null | a key of BREAKAGES}
//       Result   heads, shared: the records (attention.js) of this batch item; in them the gradients of weights and
//                    biases are sums over the batch
//                items: [{heads, shared}] of every batch item, with the item's own share of those gradients
//                mask: of head 0, a Matrix of 0 and 1 (1 = may attend), or null; heads[h].mask is that of head h
//                surrogate: ⟨G, Y⟩ over the batch, the linear function of the output whose gradient is G
//                problem, item, edit, broken, forwardTap: what was computed, and how

function compute(page, attentionIndex, item, options = {}) {
  const problem = problemOf(page.attentions[attentionIndex], options);
  const {forwardTap, backwardTap, edit, broken} = tapsOf(problem, item, options);
  const items = problem.items.map((_, index) => {
    const values = forward(problem, index, forwardTap);
    backward(problem, values, backwardTap);
    return values;
  });
  const {heads, shared} = items[item];
  const surrogate = items.reduce((sum, other) => sum + innerProduct(other.shared.G, other.shared.output), 0);
  return {
    heads: heads.map((head, h) => ({...head, ...parameterGradients(items.map((other) => other.heads[h]))})),
    shared: {...shared, ...parameterGradients(items.map((other) => other.shared))},
    items, mask: heads[0].mask, surrogate, problem, item, edit, broken, forwardTap,
  };
}

/** forward: every batch item uses the same W and b    so here: dW and db are the sums of the items' shares. */
function parameterGradients(records) {
  const symbols = Object.keys(records[0]).filter((symbol) => /^d[Wb]/.test(symbol));
  return Object.fromEntries(symbols.map((symbol) => [symbol, addAll(records.map((record) => record[symbol]))]));
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

/** The options as taps: an edit is one in the forward of its batch item, a breakage one in the backward of all. */
function tapsOf(problem, item, {edit = null, broken = null}) {
  const breakage = broken === null ? null : breakageOf(broken, problem);
  const rules = breakage ? breakage.replaces(problem) : {};
  const offset = edit && edit.value - entryBefore(problem, item, edit);
  const isEdited = (symbol, record) => edit !== null && symbol === edit.symbol && record.item === item
    && (symbol === "G" || headsSharing(problem, symbol, edit.head).includes(record.index));
  return {
    edit: edit && {...edit, offset},
    broken: breakage,
    forwardTap: (symbol, matrix, record) => (
      isEdited(symbol, record) ? moveEntry(matrix, edit.row, edit.col, offset) : matrix),
    backwardTap: (symbol, matrix, record) => (
      symbol in rules ? rules[symbol].matrix(matrix, record, problem) : matrix),
  };
}

/**
 * The entry as it is without the edit, which adds to it a constant, the difference. So gradients pass on unchanged to X
 * and W, and a finite difference that moves those moves the edited entry too.
 */
function entryBefore(problem, item, {symbol, head, row, col}) {
  const {heads, shared} = forward(problem, item);
  return (symbol === "G" ? shared : heads[head])[symbol].at(row, col);
}

/** The matrix with `offset` added to one entry. */
function moveEntry(matrix, row, col, offset) {
  const moved = new Matrix(matrix.rows, matrix.cols, matrix.data.slice());
  moved.set(row, col, matrix.at(row, col) + offset);
  return moved;
}
