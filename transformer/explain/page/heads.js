"use strict";
// The heads panel: A, dA or dS of every head of this attention, small, side by side; choosing one selects the head.

const LABELLED = 12; // pixels of a cell beside which a token can be read
let headsSymbol = "A"; // the panel's own choice

const HEAD_SYMBOLS = [["A", "A, the weights"], ["dA", "dA"], ["dS", "dS"]];

function renderHeads(container, view) {
  const {state, result, labels} = view;
  const symbol = headsSymbol;
  const kind = kindOf(symbol);
  const matrices = result.heads.map((head) => head[symbol]);
  const scale = kind === "weight" ? 1 : view.commonScale ?? Math.max(...matrices.map(extent));
  const cell = smallCell(labels, matrices.length);
  const labelled = cell >= LABELLED;
  const multiples = matrices.map((matrix, h) => {
    const norm = normOf(matrix);
    const picture = smallGrid(matrix, {name: `${symbol} of head ${h}`, kind, scale, cell, mask: result.heads[h].mask,
      rowLabels: labels.query, colLabels: labels.key, onCell: () => setState({head: h})});
    const button = build("button", {type: "button", "aria-pressed": String(h === state.head), "data-key": `heads:${h}`,
      onclick: () => setState({head: h})}, `head ${h}`);
    return build("figure", {class: `multiple${h === state.head ? " chosen" : ""}${labelled ? " labelled" : ""}`, "data-head": h}, button, picture,
      build("figcaption", {}, whatTheHeadDoes(symbol, matrix, norm)));
  });
  container.append(
    build("div", {class: "panel-controls"}, segments("Show", "heads-symbol", HEAD_SYMBOLS, symbol, (chosen) => {
      headsSymbol = chosen;
      setState({});
    }), legend(kind, scale)),
    build("div", {class: "multiples"}, ...multiples),
    build("p", {class: "note"}, kind === "weight" ? "All on the scale from 0 to 1. Under each: how many keys a query spreads over, on average " +
      "(the exponential of the entropy of a row; 1 is a choice, a larger number an average)."
      : "All heads on one scale, so that a pale head is one that learns little from this sentence. Under each: the norm of the matrix."));
}

/** The number under a picture. */
function whatTheHeadDoes(symbol, matrix, norm) {
  if (symbol !== "A") return build("span", {"data-value": norm}, `‖${symbol}‖ = ${formatNumber(norm, 3)}`);
  const keys = effectiveKeys(matrix);
  return build("span", {"data-value": keys}, `${formatNumber(keys, 3)} keys`);
}

/** exp of the entropy of a row of A, averaged over the rows that attend to anything. */
function effectiveKeys(weights) {
  const entropies = [];
  for (let i = 0; i < weights.rows; i++) {
    const row = Array.from(weights.row(i)).filter((a) => a > 0);
    if (row.length > 0) entropies.push(-row.reduce((sum, a) => sum + a * Math.log(a), 0));
  }
  return entropies.reduce((sum, entropy) => sum + Math.exp(entropy), 0) / (entropies.length || 1);
}

/** The side of a cell of a small picture: `count` pictures, which of few may be larger. */
function smallCell(labels, count) {
  const longest = Math.max(labels.query.length, labels.key.length);
  return Math.max(2, Math.min(26, Math.floor((count > 4 ? 150 : 230) / longest)));
}

/** A grid without numbers and labels, and not a stop of the Tab key of its own: a button beside it chooses it. */
function smallGrid(matrix, options) {
  const figure = grid(matrix, {numbers: false, bare: true, ...options});
  figure.classList.add("small-grid");
  figure.querySelector(".image-grid").tabIndex = -1;
  return figure;
}

PANELS.push({id: "heads", title: "Heads", render: renderHeads});
