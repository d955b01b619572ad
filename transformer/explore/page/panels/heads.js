"use strict";
// The view of the heads: A, dA or dS of every head of this attention, small, side by side; choosing one selects the head.

let headsSymbol = "A"; // the view's own choice

function renderHeads(container, view) {
  const {state, result, labels} = view;
  const symbol = headsSymbol, kind = paintOf(view, symbol);
  const matrices = result.heads.map((head) => head[symbol]);
  const scale = kind === "weight" ? 1 : Math.max(...matrices.map(extent));
  const side = Math.max(2, Math.min(16, Math.floor(150 / Math.max(labels.query.length, labels.key.length))));
  const choose = (head) => setState({head});
  const multiples = matrices.map((matrix, h) => build("figure", {class: h === state.head ? "multiple chosen" : "multiple", "data-head": h},
    build("button", {type: "button", class: "small", "aria-pressed": String(h === state.head), "data-key": `heads:${h}`, onclick: () => choose(h)}, `head ${h + 1}`),
    grid(matrix, {name: `${symbol} of head ${h + 1}`, kind, scale, size: {width: side, height: side}, mask: result.heads[h].mask, bare: true,
      rowLabels: labels.query, colLabels: labels.key, tokens: tokensOfTensor(view, symbol), onCell: () => choose(h)}),
    build("figcaption", {}, whatTheHeadDoes(symbol, matrix))));
  const show = (chosen) => {
    headsSymbol = chosen;
    setState({});
  };
  container.append(segments("Show", "heads-symbol", [["A", "A, the weights"], ["dA", "dA"], ["dS", "dS"]], symbol, show),
    build("div", {class: "multiples"}, ...multiples),
    build("p", {class: "note"}, kind === "weight" ? ABOUT_WEIGHTS : ABOUT_GRADIENTS));
}

const ABOUT_WEIGHTS = "All on the scale from 0 to 1. Under each: over how many keys a query spreads, on average: the "
  + "exponential of the entropy of a row, 1 where it chooses one.";
const ABOUT_GRADIENTS = "All heads on one scale, so that a pale head is one that learns little from this sentence. Under each: the norm of the matrix.";

/** The number under a picture. */
function whatTheHeadDoes(symbol, matrix) {
  const number = symbol === "A" ? effectiveKeys(matrix) : normOf(matrix);
  const text = formatNumber(number, 3);
  return build("span", {"data-value": number}, symbol === "A" ? `${text} keys` : `‖${symbol}‖ = ${text}`);
}

/** exp of the entropy of a row of A, averaged over the rows that attend to anything. */
function effectiveKeys(weights) {
  const spreads = [];
  for (let i = 0; i < weights.rows; i++) {
    const seen = Array.from(weights.row(i)).filter((a) => a > 0);
    if (seen.length > 0) spreads.push(Math.exp(-seen.reduce((sum, a) => sum + a * Math.log(a), 0)));
  }
  return spreads.reduce((sum, spread) => sum + spread, 0) / (spreads.length || 1);
}

PANELS.push({id: "heads", title: "Heads", kinds: ["attention"], render: renderHeads});
