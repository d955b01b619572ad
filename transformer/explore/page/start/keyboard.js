"use strict";
// The keyboard: anywhere on the page the arrows walk along the strip, but grids, menus, sliders and fields keep theirs; and
// a redraw leaves the focus where it was.

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (!event.key.startsWith("Arrow") || event.target.closest("input, select, textarea, .grid, #side, #map, #texts")) return;
    event.preventDefault();
    setState({symbol: symbolAfter(event.key, currentView())});
    // On the strip the focus goes along; elsewhere it comes to the strip, so that a screen reader says the new step.
    document.querySelector(".tile[aria-current]").focus();
  });
}

/** The key of the element with the focus, to find its successor after a redraw. */
const focusedKey = () => document.activeElement?.dataset.key;

/** Give the focus back to the element with that key, if the redraw took it away. */
function restoreFocus(key) {
  if (!key || focusedKey() === key) return;
  document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({preventScroll: true});
}
