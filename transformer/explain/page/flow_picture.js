"use strict";
// The picture of the flow panel: two columns of tokens and lines between them, as wide as the norm of the gradient.

const THINNEST = 0.02; // of the widest line: what is less is not drawn
const MOST_LINES = 300; // of other tokens than the chosen one: more would be a blot
const [LEFT, RIGHT] = [130, 290]; // where the lines begin and end

function flowPicture(matrix, {state, labels, attention}) {
  const step = Math.max(matrix.rows, matrix.cols) > 20 ? 18 : 30;
  const y = (n) => 46 + step * n;
  const lines = flowLines(matrix, state.row).map(({i, j, share}) => {
    const [from, to, middle] = [y(i), y(j), (LEFT + RIGHT) / 2];
    const curve = {d: `M ${LEFT} ${from} C ${middle} ${from} ${middle} ${to} ${RIGHT} ${to}`, "stroke-width": share * step / 3,
      class: i === state.row ? "line chosen" : "line", "data-value": matrix.at(i, j)};
    const title = `${labels.query[i]} to ${labels.key[j]}: ${formatNumber(matrix.at(i, j))}`;
    return inSvg("path", curve, inSvg("title", {}, title));
  });
  const text = (x, height, end, content, more = {}) => inSvg("text",
    {x, y: height, class: "token", "text-anchor": end, "dominant-baseline": "middle", ...more}, content);
  const queries = labels.query.map((token, i) =>
    text(LEFT - 8, y(i), "end", shorten(token), buttonOfRow(token, i, i === state.row)));
  const keys = labels.key.map((token, j) => text(RIGHT + 8, y(j), "start", shorten(token)));
  const sides = [text(LEFT - 8, 14, "end", `from ${attention.queries} (query)`, {class: "side"}),
    text(RIGHT + 8, 14, "start", `to ${attention.keys} (key)`, {class: "side"})];
  const height = y(Math.max(matrix.rows, matrix.cols)) - step / 2;
  const name = `The strongest gradients from ${attention.queries} tokens to ${attention.keys} tokens; all are in the tables`;
  const picture = inSvg("svg", {class: "flow-lines", viewBox: `0 0 420 ${height}`, role: "group", "aria-label": name},
    ...sides, ...lines, ...queries, ...keys);
  const all = matrix.rows * matrix.cols <= MOST_LINES;
  return build("div", {}, build("div", {class: "flow-picture"}, picture), all ? "" : build("p", {class: "note"},
    `Drawn are the lines of the chosen token, and the ${MOST_LINES} strongest of the others.`));
}

/** [{i, j, share of the widest}]: those of the chosen query last, so that they lie on top. */
function flowLines(matrix, chosen) {
  const most = extent(matrix);
  const lines = [];
  for (let i = 0; i < matrix.rows; i++) {
    for (let j = 0; j < matrix.cols; j++) {
      const share = most > 0 ? matrix.at(i, j) / most : 0;
      if (share >= THINNEST) lines.push({i, j, share});
    }
  }
  const others = lines.filter(({i}) => i !== chosen).sort((a, b) => a.share - b.share).slice(-MOST_LINES);
  return [...others, ...lines.filter(({i}) => i === chosen)];
}

/** What makes a token of the left column one that can be chosen. */
function buttonOfRow(token, row, chosen) {
  const choose = () => setState({row});
  const onKey = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  };
  return {class: chosen ? "token chosen" : "token", tabindex: "0", role: "button", "aria-pressed": String(chosen),
    "aria-label": `${token}: show what it sends`, "data-key": `flow:row:${row}`, onclick: choose, onkeydown: onKey};
}

function inSvg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function shorten(token) {
  const letters = [...token];
  return letters.length > 14 ? `${letters.slice(0, 13).join("")}…` : token;
}
