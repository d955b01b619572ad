"use strict";
// What the tests ask of a page that no selector answers. Loaded into the page by measured() in pages.py.

/** Texts whose contrast with what is behind them is below `least`, the ratio of WCAG 2, or whose letters are below `size` pixels. */
const illegible = (least, size) => shownTexts().flatMap(([element, text]) => {
  const [dark, light] = coloursOf(element).map(luminance).sort((a, b) => a - b), ratio = (light + 0.05) / (dark + 0.05);
  const letters = element.closest("sub, sup") ? size : parseFloat(getComputedStyle(element).fontSize);
  return ratio < least || letters < size ? [`${text} in ${pathOf(element)}: ${ratio}, ${letters} px`] : [];
});

/** [element, text] of every text that is seen; what is disabled may be pale. */
function shownTexts() {
  const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (text && isShown(element) && !element.closest("option, :disabled, [aria-disabled=true]")) texts.push([element, text]);
  }
  return texts;
}

function isShown(element) {
  const {width, height} = element.getBoundingClientRect();
  return width > 1 && height > 1 && element.checkVisibility({opacityProperty: true, visibilityProperty: true});
}

const brush = document.createElement("canvas").getContext("2d", {willReadFrequently: true});

/** The colour behind an element, over white, and that of its letters: the browser paints both. */
function coloursOf(element) {
  const chain = [];
  for (let inner = element; inner; inner = inner.parentElement) chain.unshift(getComputedStyle(inner));
  const painted = (colour, opacity = 1) => {
    Object.assign(brush, {fillStyle: colour, globalAlpha: opacity});
    brush.fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const ground = ["white", ...chain.map(({backgroundColor}) => backgroundColor)].map((colour) => painted(colour)).at(-1);
  const {fill, color} = chain.at(-1), opacity = chain.reduce((product, style) => product * Number(style.opacity), 1);
  return [ground, painted(element instanceof SVGElement ? fill : color, opacity)];
}

/** An element, for a message. */
const pathOf = (element) => `${element.parentElement?.id} > ${element.localName}#${element.id}.${element.getAttribute("class")}`;

/** What is wrong with the frame: a window that scrolls, and what reaches out of it though nothing there scrolls. */
function frameFaults() {
  const {scrollWidth, scrollHeight, scrollTop, scrollLeft} = document.scrollingElement;
  const scrolls = (element) => element && (getComputedStyle(element).overflowX !== "visible" && element !== document.body || scrolls(element.parentElement));
  const sticksOut = ({right, bottom, left, top}) => right > innerWidth + 1 || bottom > innerHeight + 1 || left < -1 || top < -1;
  return [
    ...(scrollWidth > innerWidth || scrollHeight > innerHeight || scrollTop || scrollLeft ? [`the window scrolls: ${scrollWidth}×${scrollHeight}`] : []),
    ...[...document.body.querySelectorAll("*")].filter((element) => sticksOut(element.getBoundingClientRect()) && isShown(element)
      && !scrolls(element.parentElement) && !element.closest(".visually-hidden")).map(pathOf),
    ...["map", "stage", "side"].filter((id) => !isShown(document.getElementById(id))).map((id) => `${id} is not seen`),
  ];
}

/** The elements that the Tab key is to reach; of a group of radio buttons one. */
const tabStops = () => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter((element) => (
  element.tabIndex >= 0 && !element.disabled && element.checkVisibility({visibilityProperty: true}) && (element.type !== "radio" || element.checked)));
