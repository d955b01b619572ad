"use strict";
// Zoom: a box of the map opens into the stage; Escape leads one level out, to the tile and to the place on the map.

const ZOOM_TIME = 320; // milliseconds
// From the inside to the outside: where the focus is, and where it goes.
const LEVELS = [["#stage, #side", "#strip .tile[aria-current]"], ["#strip", "#map .place[aria-current]"]];

function listenToZoom() {
  document.addEventListener("keydown", ({key, defaultPrevented, target}) => {
    if (key !== "Escape" || defaultPrevented || target.closest?.("input, select")) return;
    const level = LEVELS.find(([within]) => document.activeElement.closest(within));
    if (level) document.querySelector(level[1])?.focus();
  });
}

/** A frame that grows from a rectangle of the window to an element. */
function openInto(from, element) {
  if (!motionAllowed()) return;
  const frame = build("div", {class: "zoom-frame", "aria-hidden": "true"});
  document.body.append(frame);
  const at = ({left, top, width, height}) => ({left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px`});
  const moving = frame.animate([{...at(from), opacity: 1}, {...at(element.getBoundingClientRect()), opacity: 0.25}],
    {duration: ZOOM_TIME, easing: "cubic-bezier(0.2, 0.7, 0.2, 1)"});
  moving.finished.finally(() => frame.remove());
}
