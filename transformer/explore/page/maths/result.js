"use strict";
// The Result of a place: what is known of it in every batch item, one of which is shown.
//
//   kind, path: of the place
//   heads, shared: the records of this batch item (attention.js, layers.js; a place without heads has one empty record);
//       in them the gradients of weights and biases are sums over the batch
//   items: [{heads, shared}] of every batch item, with the item's own share of those gradients
//   mask: a Matrix of 0 and 1 (1 = may attend), or null
//   problem, item, edit, broken: what was computed
//   again(item, tap) -> {parts: [[G, Y]…], size}: the forward of an item anew, through one more tap. The loss is the sum
//       of ⟨G, Y⟩ over parts and items, of terms of that size in all. For finite differences.

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
