"use strict";
// What the tests ask of a page that no selector answers. Loaded into the page by tests/explorer/test_page_loads.py.

/**
 * What `look` finds after each of these changes of the state, where it finds something: [change, found]. With
 * `attention` and so on in `where`, there; every tile or `only` these, every view, a chosen cell and, if `breaking`, every way to break it.
 */
function everywhere(where, look, breaking = true, only = null) {
  const symbols = only ?? [...document.querySelectorAll(".tile")].map(({dataset}) => dataset.key.slice("tile:".length));
  const tiles = symbols.map((symbol) => ({symbol}));
  const cells = ["A", "dS", "dV", "dQ"].map((symbol) => ({symbol, cell: {row: 1, col: 1}}));
  const views = panelsOf(currentView()).map(({id}) => ({panel: id}));
  const broken = breaking ? BREAKAGES.map(({key}) => ({broken: key})) : [];
  explorer.setState({...where, panel: "softmax", broken: null});
  const results = [...tiles, ...cells, ...views, ...broken].map((change) => {
    explorer.setState(change);
    return [JSON.stringify(change), look(change)];
  });
  explorer.setState({broken: null});
  return results.filter(([, found]) => found.length > 0);
}

/** Whether a change of the state is not seen, or words that no reader should meet are: complaints. */
function complaints({symbol, panel}) {
  const found = [];
  if (symbol && document.querySelector(".tile[aria-current]")?.dataset.key !== `tile:${symbol}`) found.push("another tile is marked");
  if (symbol && !document.querySelector(`#stage [data-name="${symbol}"]`)) found.push("it is not on the stage");
  if (panel && document.querySelector("[role=tab][aria-selected=true]").id !== `tab-${panel}`) found.push("another tab is open");
  if (!document.getElementById("panel").innerText.trim()) found.push("the view is empty");
  const words = document.body.innerText.match(/\b(undefined|NaN|null|object Object)\b/g) ?? [];
  return [...found, ...words];
}

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

/** What reaches out of the window to the right, though nothing there scrolls: paths. Empty if all fits. */
function overflowing() {
  if (document.documentElement.scrollWidth > innerWidth) return [`the page is ${document.documentElement.scrollWidth} pixels wide`];
  const scrolls = (element) => element && (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(element).overflowX)
    || scrolls(element.parentElement));
  return [...document.body.querySelectorAll("*")]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && isShown(element) && !scrolls(element.parentElement))
    .map(pathOf);
}

/** The elements that the Tab key is to reach; of a group of radio buttons one. */
function tabStops() {
  const stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((element) => element.tabIndex >= 0 && !element.disabled && element.checkVisibility({visibilityProperty: true}));
  return stops.filter((element) => element.type !== "radio" || element.checked);
}
