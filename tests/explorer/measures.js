"use strict";
// What the tests ask of a page that no selector answers. Loaded into the page by measured() in pages.py.

/** Texts whose contrast with what is behind them is below `least`, the ratio of WCAG 2: [{text, ratio, colour, ground}]. */
function poorContrast(least) {
  const found = [];
  for (const [element, text] of shownTexts()) {
    const ground = groundOf(element);
    const [colour, alpha] = rgba(element instanceof SVGElement ? getComputedStyle(element).fill : getComputedStyle(element).color);
    const seen = over(colour, alpha * opacityOf(element), ground);
    const [dark, light] = [luminanceOf(seen), luminanceOf(ground)].sort((a, b) => a - b);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < least) found.push({text, ratio: Number(ratio.toFixed(2)), colour: seen.join(), ground: ground.join(), in: pathOf(element)});
  }
  return found;
}

/** [element, text] of every text that has a place on the page, those of fields and menus too; what is disabled may be pale. */
function shownTexts() {
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() && isShown(element) && !element.closest("option")) {
      texts.push([element, walker.currentNode.data.trim()]);
    }
  }
  for (const field of document.querySelectorAll("select, input:not([type=radio], [type=checkbox], [type=range]), textarea")) {
    if (isShown(field)) texts.push([field, field.selectedOptions?.[0]?.text ?? field.value]);
  }
  return texts.filter(([element]) => !element.closest(":disabled, [aria-disabled=true]") && !element.querySelector(":scope > :disabled"));
}

function isShown(element) {
  const {width, height} = element.getBoundingClientRect();
  return width > 1 && height > 1 && element.checkVisibility({opacityProperty: true, visibilityProperty: true});
}

/** The colour behind an element: its background and those of what it is in, over white. */
function groundOf(element) {
  const chain = [];
  for (let inner = element; inner; inner = inner.parentElement) chain.unshift(inner);
  return chain.reduce((ground, outer) => over(...rgba(getComputedStyle(outer).backgroundColor), ground), [255, 255, 255]);
}

function opacityOf(element) {
  let opacity = 1;
  for (let inner = element; inner; inner = inner.parentElement) opacity *= Number(getComputedStyle(inner).opacity);
  return opacity;
}

const over = (colour, alpha, ground) => colour.map((channel, c) => Math.round(alpha * channel + (1 - alpha) * ground[c]));

const parsed = new Map();
const brush = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d", {willReadFrequently: true});

/** Any CSS colour as [[r, g, b], alpha]: the browser paints a pixel with it. */
function rgba(css) {
  if (!parsed.has(css)) {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = css;
    brush.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
    parsed.set(css, [[r, g, b], a / 255]);
  }
  return parsed.get(css);
}

function luminanceOf(rgb) {
  const [r, g, b] = rgb.map((channel) => channel / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Where an element is, for a message. */
function pathOf(element) {
  const parts = [];
  for (let inner = element; inner && inner !== document.body; inner = inner.parentElement) {
    parts.unshift(inner.localName + (inner.id ? `#${inner.id}` : "") + [...inner.classList].map((name) => `.${name}`).join(""));
  }
  return parts.slice(-3).join(" > ");
}

/** What is wrong with the frame: a window that scrolls, and what reaches out of it though nothing there scrolls. */
function frameFaults() {
  const {scrollWidth, scrollHeight, scrollTop, scrollLeft} = document.scrollingElement;
  const scrolls = (element) => element && (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(element).overflowX)
    && element !== document.body || scrolls(element.parentElement));
  const sticksOut = ({right, bottom, left, top}) => right > innerWidth + 1 || bottom > innerHeight + 1 || left < -1 || top < -1;
  return [
    ...(scrollWidth > innerWidth || scrollHeight > innerHeight || scrollTop || scrollLeft ? [`the window scrolls: ${scrollWidth}×${scrollHeight}`] : []),
    ...[...document.body.querySelectorAll("*")].filter((element) => sticksOut(element.getBoundingClientRect()) && isShown(element)
      && !scrolls(element.parentElement) && !element.closest(".visually-hidden")).map(pathOf),
    ...["map", "stage", "side"].filter((id) => !isShown(document.getElementById(id))).map((id) => `${id} is not seen`),
  ];
}

/** Texts in letters smaller than that, but for indices. */
const smallTexts = (least) => shownTexts()
  .filter(([element]) => parseFloat(getComputedStyle(element).fontSize) < least && !element.closest("sub, sup"))
  .map(([element, text]) => `${text} in ${pathOf(element)}`);

/** The elements that the Tab key is to reach; of a group of radio buttons one. */
function tabStops() {
  const stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((element) => element.tabIndex >= 0 && !element.disabled && element.checkVisibility({visibilityProperty: true}));
  return stops.filter((element) => element.type !== "radio" || element.checked);
}
