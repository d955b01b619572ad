"use strict";
// What lights up together: the token under the pointer, or with the keyboard's focus, is marked wherever its name stands, and
// so are the query and the key of a cell.
//
// How to use:
//   standsFor(element, {side: "target", place: 3})   the element is the name of that token: a label, a word, a line
//   highlight(["target:3", …])   those tokens, and no others
//   keepHighlight()              after a redraw
//
// The target's place n is the decoder's row n: it reads the token n and is to write the next.

let highlighted = [];

function standsFor(element, {side, place}) {
  element.dataset.token = `${side}:${place}`;
  return element;
}

function highlight(tokens) {
  highlighted = tokens;
  keepHighlight();
}

function keepHighlight() {
  for (const element of document.querySelectorAll("[data-token]")) {
    element.classList.toggle("lit-token", highlighted.includes(element.dataset.token));
  }
}

/** Follow the pointer, which for a finger is where it last touched, and the keyboard's focus. */
function listenToTokens() {
  for (const event of ["pointerover", "focusin"]) {
    document.addEventListener(event, ({target}) => {
      if (target.matches(".grid-box, .grid-box canvas")) return; // which say themselves what cell it is
      const found = target.closest("[data-token]");
      highlight(found ? [found.dataset.token] : []);
    });
  }
  document.documentElement.addEventListener("pointerleave", ({pointerType}) => {
    if (pointerType === "mouse") highlight([]); // a finger that is lifted leaves too
  });
}
