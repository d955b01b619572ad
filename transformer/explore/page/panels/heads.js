"use strict";
// The view of the heads: A, dA or dS of every head of every attention of the model, small, a row for each attention. The one
// that is pointed at is drawn large below; choosing one enters it.

const HEADS_SHOW = [["A", "A, the weights"], ["dA", "dA"], ["dS", "dS"]];
let headsSymbol = "A"; // the view's own choice

function renderHeads(container, view) {
  const symbol = headsSymbol, kind = symbol === "A" ? "weight" : "gradient";
  const rows = page.places.filter((place) => place.kind === "attention").map((place) => ({place, heads: view.run.places.get(place.path).heads}));
  const scale = kind === "weight" ? 1 : Math.max(...rows.flatMap(({heads}) => heads.map((head) => extent(head[symbol]))));
  const count = rows[0].heads.length, side = Math.min(60, Math.floor((container.clientWidth - 6.5 * rem()) / count) - 12);
  const large = build("div"), room = container.clientWidth;
  const drawn = (one) => ({kind, scale, mask: one.mask});
  const look = (place, h, one) => large.replaceChildren(largeHead(view, place, h, one[symbol], {...drawn(one), room}));
  const small = (place, h, one) => {
    const isChosen = place === view.place && h === view.state.head, {rows: high, cols} = one[symbol], canvas = build("canvas");
    if (isChosen || large.children.length === 0) look(place, h, one);
    drawMatrix(canvas, one[symbol], {...drawn(one), width: side, height: side * Math.min(1, high / cols)});
    return build("button", {type: "button", class: "small-head", "data-key": `heads:${place.path}:${h}`, "aria-current": isChosen && "true",
      "aria-label": `${place.title}, head ${h + 1}`, onpointerenter: () => look(place, h, one), onfocus: () => look(place, h, one),
      onclick: () => setState({place: place.path, head: h, symbol})}, canvas, whatTheHeadDoes(symbol, one[symbol]));
  };
  const overview = build("div", {class: "heads"}, build("span"), ...rows[0].heads.map((_, h) => build("span", {}, `head ${h + 1}`)),
    ...rows.flatMap(({place, heads}) => [build("span", {title: place.title}, `${isCross(place) ? "cross" : place.side} ${place.layer + 1}`),
      ...heads.map((one, h) => small(place, h, one))]));
  overview.style.gridTemplateColumns = `repeat(${count + 1}, auto)`;
  const show = (chosen) => {
    headsSymbol = chosen;
    setState({});
  };
  container.append(segments("Show", "heads-symbol", HEADS_SHOW, symbol, show), overview, large,
    build("p", {class: "note"}, kind === "weight" ? ABOUT_WEIGHTS : ABOUT_GRADIENTS));
}

const ABOUT_WEIGHTS = "All on the scale from 0 to 1. Under each: over how many keys a query spreads, on average: the "
  + "exponential of the entropy of a row, 1 where it chooses one.";
const ABOUT_GRADIENTS = "All heads on one scale, so that a pale head is one that learns little from this sentence. Under each: the norm of the matrix.";

/** With the names of its rows and columns. */
function largeHead(view, place, h, matrix, {room, ...options}) {
  const attention = page.attentions[place.attention], {query, key} = labelsOfItem({place, attention}, view.state.item);
  const width = Math.floor((room - 20 - widthOfLabels(query) - rem()) / matrix.cols);
  return grid(matrix, {...options, name: `${place.title}, head ${h + 1}`, caption: `${place.title}, head ${h + 1}`, rowLabels: query, colLabels: key,
    tokens: {rows: attention.queries, cols: attention.keys}, size: {width: Math.min(20, width), height: Math.ceil(1.15 * rem())}});
}

/** The number under a picture. */
const whatTheHeadDoes = (symbol, matrix) => exactNumber(symbol === "A" ? effectiveKeys(matrix) : normOf(matrix), 3);

/** exp of the entropy of a row of A, averaged over the rows that attend to anything. */
function effectiveKeys(weights) {
  const spreads = [];
  for (let i = 0; i < weights.rows; i++) {
    const seen = Array.from(weights.row(i)).filter((a) => a > 0);
    if (seen.length > 0) spreads.push(Math.exp(-seen.reduce((sum, a) => sum + a * Math.log(a), 0)));
  }
  return spreads.reduce((sum, spread) => sum + spread, 0) / (spreads.length || 1);
}

PANELS.push({id: "heads", title: "Heads", render: renderHeads});
