"use strict";
// Pointing: frames around what a story speaks of, and the scrolling that brings it into sight, above the story's bar.
//
// How to use:
//   pointAt(keys, view, bring)   frames around the elements with these data-keys, in place of those before; with `bring`
//                                they are brought into sight, as many as there is room for, the first one first, and then what lies around them

const MARGIN = 12; // pixels between what is pointed at and the edges of the window
/** Pixels between a frame and what stands in it; beside a token stands the next. */
const aroundOf = (key) => (key.includes("token:") ? 2 : 5);
const frames = {box: null, targets: []};

/** What needs no key of its own, since it has a place on the page. */
function selectorOf(key) {
  const [kind, name = ""] = key.split(":").map((part) => CSS.escape(part));
  return {worked: "#stage .worked", backward: "#strip .tile-row.backward", grid: `#stage [data-name="${name}"]`, bars: `#panel [data-bars="${name}"]`,
    fact: `#panel [data-fact="${name}"]`}[kind] ?? "#nowhere";
}

/** The element that a key names; null if it is not on the page, or not seen. */
function targetOf(key, view) {
  const [kind, symbol] = key.split(":");
  const shown = ["tile", "grid"].includes(kind) ? `${kind}:${shownSymbol(view, symbol)}` : key;
  const found = document.querySelector(`[data-key="${CSS.escape(shown)}"]`)
    ?? document.querySelector(selectorOf(shown));
  return found?.checkVisibility() ? found : null;
}

function pointAt(keys, view, bring) {
  if (frames.box === null) {
    frames.box = build("div", {class: "story-frames", "aria-hidden": "true"});
    document.body.append(frames.box);
    new ResizeObserver(placeFrames).observe(document.body);
    addEventListener("resize", placeFrames);
    document.addEventListener("scroll", placeFrames, {capture: true, passive: true});
  }
  frames.targets = keys.map((key) => ({key, element: targetOf(key, view)})).filter(({element}) => element !== null);
  frames.box.replaceChildren(...frames.targets.map(({key}) => build("div", {class: "story-frame", "data-target": key})));
  if (bring) bringIntoSight(frames.targets.map(({element}) => element));
  placeFrames();
}

/** Each frame stands around its element, or around as much of it as is seen in the box that it scrolls in. */
function placeFrames() {
  frames.targets.forEach(({key, element}, n) => {
    const around = aroundOf(key);
    const {left, top, right, bottom} = seenPart(element);
    const frame = frames.box.children[n];
    frame.hidden = right - left < 4 || bottom - top < 4;
    frame.style.left = `${left + scrollX - around}px`;
    frame.style.top = `${top + scrollY - around}px`;
    frame.style.width = `${right - left + 2 * around}px`;
    frame.style.height = `${bottom - top + 2 * around}px`;
  });
}

function seenPart(element) {
  let {left, top, right, bottom} = element.getBoundingClientRect();
  for (let outer = element.parentElement; outer !== null && outer !== document.body; outer = outer.parentElement) {
    if (!scrollsSideways(outer)) continue;
    const box = outer.getBoundingClientRect();
    [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
    [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
  }
  // Not into the margins of a narrow window, which would then scroll sideways.
  return {left: Math.max(left, 6), top, right: Math.min(right, document.documentElement.clientWidth - 6), bottom};
}

const scrollsSideways = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);

function bringIntoSight(elements) {
  if (elements.length === 0) return;
  const chosen = elements.flatMap((element) => element.querySelector("[aria-selected=true]") ?? []); // of a wide grid
  [...chosen, ...elements.toReversed()].forEach(bringSideways); // the first one last: it wins
  const room = {top: MARGIN, bottom: document.querySelector(".story-bar").getBoundingClientRect().top - MARGIN};
  const height = room.bottom - room.top;
  let around = null;
  const surroundings = elements.map((element) => element.parentElement);
  for (const {top, bottom} of [...elements, ...surroundings].map((element) => element.getBoundingClientRect())) {
    const wider = around ? {top: Math.min(around.top, top), bottom: Math.max(around.bottom, bottom)} : {top, bottom};
    if (around === null || wider.bottom - wider.top <= height) around = wider;
  }
  if (around.top >= room.top && around.bottom <= room.bottom) return;
  const spare = Math.max(0, height - (around.bottom - around.top));
  scrollBy({top: around.top - room.top - spare / 2, behavior: scrolling()});
}

/** Within the boxes that scroll sideways: the strip, a wide grid. */
function bringSideways(element) {
  for (let outer = element.parentElement; outer !== null && outer !== document.body; outer = outer.parentElement) {
    if (outer.scrollWidth <= outer.clientWidth || !scrollsSideways(outer)) continue;
    const box = outer.getBoundingClientRect(), {left, right} = element.getBoundingClientRect();
    if (right - left < box.width && (left < box.left || right > box.right)) outer.scrollLeft += (left + right) / 2 - (box.left + box.right) / 2;
  }
}
