"use strict";
// The picture of the flow panel: two columns of tokens and lines between them, as wide as the norm of the gradient.

const THINNEST = 0.02; // of the widest line: what is less is not drawn
const MOST_LINES = 300; // of other tokens than the chosen one: more would be a blot
const [LEFT, RIGHT] = [130, 290]; // where the lines begin and end

function flowPicture(matrix, chosen, {labels, attention}) {
  const step = Math.max(matrix.rows, matrix.cols) > 20 ? 18 : 30;
  const y = (n) => 46 + step * n;
  const lines = flowLines(matrix, chosen).map(({i, j, share}) => {
    const [from, to, middle] = [y(i), y(j), (LEFT + RIGHT) / 2];
    const curve = {d: `M ${LEFT} ${from} C ${middle} ${from} ${middle} ${to} ${RIGHT} ${to}`, "stroke-width": share * step / 3,
      class: isOf(chosen, i, j) ? "line chosen" : "line", "data-value": matrix.at(i, j)};
    const title = `${labels.query[i]} to ${labels.key[j]}: ${formatNumber(matrix.at(i, j))}`;
    return inSvg("path", curve, inSvg("title", {}, title));
  });
  const text = (x, height, end, content, more = {}) => inSvg("text",
    {x, y: height, class: "token", "text-anchor": end, "dominant-baseline": "middle", ...more}, content);
  const sentence = {query: attention.queries, key: attention.keys};
  const column = (side, x, end) => labels[side].map((token, place) => standsFor(
    text(x, y(place), end, shorten(token), buttonOf(side, place, token, side === chosen.side && place === chosen.place)),
    {side: sentence[side], place}));
  const sides = [text(LEFT - 8, 14, "end", `${attention.queries} (query)`, {class: "side"}),
    text(RIGHT + 8, 14, "start", `${attention.keys} (key)`, {class: "side"})];
  const height = y(Math.max(matrix.rows, matrix.cols)) - step / 2;
  const name = `The strongest gradients from ${attention.queries} tokens to ${attention.keys} tokens`;
  const picture = inSvg("svg", {class: "flow-lines", viewBox: `0 0 420 ${height}`, role: "group", "aria-label": name},
    ...sides, ...lines, ...column("query", LEFT - 8, "end"), ...column("key", RIGHT + 8, "start"));
  const all = matrix.rows * matrix.cols <= MOST_LINES;
  return build("div", {}, picture, all ? "" : build("p", {class: "note"},
    `Drawn are the lines of the chosen token, and the ${MOST_LINES} strongest of the others.`));
}

/** Whether the line from query i to key j is one of the chosen token's. */
const isOf = ({side, place}, i, j) => (side === "query" ? i : j) === place;

/** [{i, j, share of the widest}]: those of the chosen token last, so that they lie on top. */
function flowLines(matrix, chosen) {
  const most = extent(matrix);
  const lines = [];
  for (let i = 0; i < matrix.rows; i++) {
    for (let j = 0; j < matrix.cols; j++) {
      const share = most > 0 ? matrix.at(i, j) / most : 0;
      if (share >= THINNEST) lines.push({i, j, share});
    }
  }
  const others = lines.filter(({i, j}) => !isOf(chosen, i, j)).sort((a, b) => a.share - b.share).slice(-MOST_LINES);
  return [...others, ...lines.filter(({i, j}) => isOf(chosen, i, j))];
}

/** What makes a token one that can be chosen. */
function buttonOf(side, place, token, chosen) {
  const choose = () => chooseToken(side, place);
  const onKey = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  };
  return {class: chosen ? "token chosen" : "token", tabindex: "0", role: "button", "aria-pressed": String(chosen),
    "aria-label": `${token}: show ${side === "query" ? "what it sends" : "who sends to it"}`,
    "data-key": `flow:${side}:${place}`, onclick: choose, onkeydown: onKey};
}

function shorten(token) {
  const letters = [...token];
  return letters.length > 14 ? `${letters.slice(0, 13).join("")}…` : token;
}
