"use strict";
// What lights up together: the token under the pointer, or with the keyboard's focus, is marked wherever it plays a part,
// and so are the query and the key of a cell. Nothing is redrawn: labels get a class, grids a band on top.
//
// How to use:
//   standsFor(element, {side: "target", place: 3})   the element is that token: a label, a word, a line
//   showsTokens(element, {rows, cols, count, cellAt})   it has a row or a column for each token: a grid, or a picture of one
//       rows, cols  {axis: "query" or "key", side: "source" or "target"}, or null where they are no tokens
//       count       [rows, columns]
//       cellAt      (row, col) -> the cell as {left, top, width, height}, in the window
//   cellOn(element, row, col) -> the same place, within the element
//   highlightToken(side, place), highlightCell(element, row, col), highlightNothing()
//   keepHighlight()  after a redraw
//
// The target's place n is the decoder's row n: it reads the token n and is to write the next.

const picturesOfTokens = new WeakMap(); // what showsTokens was told
let highlighted = []; // [{side, place, axis}]; without an axis the token is meant, whether it asks or is asked

function standsFor(element, {side, place}) {
  element.dataset.token = `${side}:${place}`;
  return element;
}

function showsTokens(element, picture) {
  element.classList.add("shows-tokens");
  picturesOfTokens.set(element, picture);
  return element;
}

const highlightToken = (side, place) => highlight([{side, place, axis: null}]);
const highlightNothing = () => highlight([]);

function highlightCell(element, row, col) {
  const {rows, cols} = picturesOfTokens.get(element);
  highlight([[rows, row], [cols, col]].filter(([axis]) => axis).map(([axis, place]) => ({...axis, place})));
}

function highlight(tokens) {
  if (JSON.stringify(tokens) === JSON.stringify(highlighted)) return;
  highlighted = tokens;
  keepHighlight();
}

function keepHighlight() {
  for (const band of document.querySelectorAll(".token-band")) band.remove();
  const names = new Set(highlighted.map(({side, place}) => `${side}:${place}`));
  for (const element of document.querySelectorAll("[data-token]")) {
    element.classList.toggle("lit-token", names.has(element.dataset.token));
  }
  if (highlighted.length === 0) return;
  // First everything is measured, then everything is drawn: in turns, each band would make the browser lay out the page.
  const bands = [...document.querySelectorAll(".shows-tokens")].flatMap((element) => bandsOf(element).map((box) => [element, box]));
  for (const [element, box] of bands) element.append(boxed("token-band", box));
}

/** The rows and the columns of the highlighted tokens, within the element. */
function bandsOf(element) {
  const {rows, cols, count: [height, width]} = picturesOfTokens.get(element);
  const isOf = (axis, token) => axis && axis.side === token.side && [null, axis.axis].includes(token.axis);
  return highlighted.flatMap((token) => [
    ...(isOf(rows, token) && token.place < height ? [[token.place, 0, token.place, width - 1]] : []),
    ...(isOf(cols, token) && token.place < width ? [[0, token.place, height - 1, token.place]] : []),
  ]).map(([top, left, bottom, right]) => {
    const [first, last] = [cellOn(element, top, left), cellOn(element, bottom, right)];
    return {left: first.left, top: first.top, width: last.left + last.width - first.left, height: last.top + last.height - first.top};
  });
}

function cellOn(element, row, col) {
  const box = element.getBoundingClientRect();
  const {left, top, width, height} = picturesOfTokens.get(element).cellAt(row, col);
  return {left: left - box.left - element.clientLeft + element.scrollLeft, top: top - box.top - element.clientTop + element.scrollTop, width, height};
}

/** An empty element of that size and place. */
function boxed(className, {left, top, width, height}) {
  const element = make("span", className);
  Object.assign(element.style, {left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px`});
  return element;
}

/** The cell of a matrix that is drawn on all of a canvas. */
function cellOfCanvas(canvas, [rows, cols], row, col) {
  const {left, top, width, height} = canvas.getBoundingClientRect();
  return {left: left + width * col / cols, top: top + height * row / rows, width: width / cols, height: height / rows};
}

/** Follow the pointer, which for a finger is where it last touched, and the keyboard's focus. */
function listenToTokens() {
  for (const event of ["pointerover", "focusin"]) {
    document.addEventListener(event, ({target}) => {
      if (target.matches(".grid-box, .grid-box canvas")) return; // which say themselves what cell it is
      const found = target.closest("[data-token]");
      if (found) highlightToken(...sideAndPlace(found.dataset.token));
      else highlightNothing();
    });
  }
  document.documentElement.addEventListener("pointerleave", ({pointerType}) => {
    if (pointerType === "mouse") highlightNothing(); // a finger that is lifted leaves too
  });
}

function sideAndPlace(name) {
  const [side, place] = name.split(":");
  return [side, Number(place)];
}
