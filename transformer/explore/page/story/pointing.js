"use strict";
// Pointing: frames around what a story speaks of. The window never scrolls; what stands in a box that scrolls is brought
// into sight there.
//
// How to use:
//   pointAt(keys, view, bring)   frames around the elements with these data-keys, in place of those before; with `bring`
//                                they are brought into sight, the first one last: it wins

const frames = {box: null, targets: []};

/** What needs no key of its own, since it has a place on the page. */
function selectorOf(key) {
  const [kind, name = ""] = key.split(":").map((part) => CSS.escape(part));
  return {worked: "#panel .worked .terms", backward: "#strip .tile-row.backward", grid: `#stage [data-name="${name}"]`, bars: `#panel [data-bars="${name}"]`,
    fact: `#panel [data-fact="${name}"]`}[kind] ?? "#nowhere";
}

/** The element that a key names; null if it is not on the page, or not seen. */
function targetOf(key, view) {
  const [kind, symbol] = key.split(":");
  const shown = ["tile", "grid"].includes(kind) ? `${kind}:${shownSymbol(view, symbol)}` : key;
  const found = kind === "grid" ? null : document.querySelector(`[data-key="${CSS.escape(shown)}"]`);
  const element = found ?? document.querySelector(selectorOf(shown));
  return element?.checkVisibility() ? element : null;
}

function pointAt(keys, view, bring) {
  if (frames.box === null) {
    frames.box = build("div", {class: "story-frames", "aria-hidden": "true"});
    document.body.append(frames.box);
    new ResizeObserver(placeFrames).observe(document.getElementById("stage"));
    document.addEventListener("scroll", placeFrames, {capture: true, passive: true});
  }
  frames.targets = keys.map((key) => ({key, element: targetOf(key, view)})).filter(({element}) => element !== null);
  frames.box.replaceChildren(...frames.targets.map(({key}) => build("div", {class: "story-frame", "data-target": key})));
  if (bring) frames.targets.toReversed().forEach(({element}) => (
    element.querySelector(".bar-cell.chosen, .labels.left .chosen") ?? element).scrollIntoView({block: "nearest", inline: "nearest"}));
  placeFrames();
}

/** Each frame stands around its element, or around as much of it as is seen in the boxes that it scrolls in. */
function placeFrames() {
  frames.targets.forEach(({element}, n) => {
    const {left, top, right, bottom} = seenPart(element), frame = frames.box.children[n];
    frame.hidden = right - left < 4 || bottom - top < 4;
    Object.assign(frame.style, {left: `${left - 2}px`, top: `${top - 2}px`, width: `${right - left + 4}px`, height: `${bottom - top + 4}px`});
  });
}

function seenPart(element) {
  let {left, top, right, bottom} = element.getBoundingClientRect();
  for (let outer = element.parentElement; outer && outer !== document.body; outer = outer.parentElement) {
    if (getComputedStyle(outer).overflowX === "visible") continue;
    const box = outer.getBoundingClientRect();
    [left, right] = [Math.max(left, box.left + 2), Math.min(right, box.right - 2)];
    [top, bottom] = [Math.max(top, box.top + 2), Math.min(bottom, box.bottom - 2)];
  }
  return {left, top, right, bottom};
}
