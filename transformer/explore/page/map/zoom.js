"use strict";
// Zoom: a box of the map opens into the strip, a tile into the stage, a cell into its sum; Escape leads one level out.
//
// How to use:
//   listenToZoom()              once, at the start
//   openInto(rectangle, element)  a frame that grows from the rectangle to the element, or (element, rectangle) shrinks back

const ZOOM_TIME = 320; // milliseconds

// From the outside to the inside: what one sees, and what stands for it one level further out.
const LEVELS = [
  {within: "#strip", out: () => document.querySelector("#map .place[aria-current]")},
  {within: "#stage, #side", out: () => document.querySelector("#strip .tile[aria-current]")},
];

function listenToZoom() {
  document.addEventListener("click", (event) => {
    const opened = event.target.closest?.(".tile")?.getBoundingClientRect();
    if (opened) requestAnimationFrame(() => openInto(opened, document.getElementById("stage")));
  }, {capture: true}); // before the redraw takes the tile away
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || event.target.closest?.("input, select, textarea, [role=dialog]")) return;
    zoomOut();
  });
}

/** One level out: from a cell to its tile, from a tile to its place on the map. */
function zoomOut() {
  const inner = document.activeElement;
  const level = LEVELS.find(({within}) => inner.closest(within));
  const outer = level?.out();
  if (!outer) return;
  openInto(inner.closest(level.within).getBoundingClientRect(), outer);
  outer.focus();
}

/** A frame that grows, or shrinks, from a rectangle of the window to an element. */
function openInto(from, element) {
  if (!element || !motionAllowed()) return;
  const frame = build("div", {class: "zoom-frame", "aria-hidden": "true"});
  document.body.append(frame);
  const at = ({left, top, width, height}) => ({left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px`});
  const moving = frame.animate([{...at(from), opacity: 1}, {...at(element.getBoundingClientRect()), opacity: 0.25}],
    {duration: ZOOM_TIME, easing: "cubic-bezier(0.2, 0.7, 0.2, 1)"});
  moving.finished.finally(() => frame.remove());
}
