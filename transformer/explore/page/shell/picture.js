"use strict";
// A part of the page as a picture: an SVG of its own, with texts, rectangles and images, that any program opens.
//
// How to use:
//   pictureOf(element) -> the text of an SVG file that looks like the element, with all that scrolls in it
//
// Each element gives a rectangle for its background and its border, each line of text a <text>, each canvas an <image>.
// What is there to be operated, and not to be seen, is left out.

const NOT_PICTURED = "input, select, textarea, .panel-controls, .step-buttons, .tools, .adding, .save, .map-sweeps, .visually-hidden";
const PICTURE_MARGIN = 12;
// Of the elements of an SVG, what style sheets have set.
const STYLES_OF_SHAPES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
  "opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor", "dominant-baseline", "visibility", "display",
  "transform", "transform-origin", "transform-box"];

function pictureOf(element) {
  const box = element.getBoundingClientRect();
  const [width, height] = [Math.max(box.width, element.scrollWidth), Math.max(box.height, element.scrollHeight)];
  const left = box.left - element.scrollLeft - PICTURE_MARGIN, top = box.top - element.scrollTop - PICTURE_MARGIN;
  const whole = {width: Math.ceil(width + 2 * PICTURE_MARGIN), height: Math.ceil(height + 2 * PICTURE_MARGIN)};
  const picture = inSvg("svg", {...whole, viewBox: `0 0 ${whole.width} ${whole.height}`});
  picture.append(inSvg("title", {}, forXml(document.title)));
  picture.append(inSvg("rect", {...whole, fill: getComputedStyle(document.getElementById("stage")).backgroundColor}));
  const drawing = {left, top, picture, clips: 0};
  for (const child of element.childNodes) drawNode(drawing, picture, child);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(picture)}`;
}

/** Control characters may not stand in XML, not even escaped. */
// eslint-disable-next-line no-control-regex
const forXml = (text) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "�");

function drawNode(drawing, into, node) {
  if (node.nodeType === Node.TEXT_NODE) drawText(drawing, into, node);
  if (node.nodeType !== Node.ELEMENT_NODE || node.matches(NOT_PICTURED)) return;
  const style = getComputedStyle(node);
  const place = placeInPicture(drawing, node.getBoundingClientRect());
  if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return;
  if (node instanceof SVGElement) {
    into.append(shapesOf(node, place));
    return;
  }
  drawBox(drawing, into, style, place);
  if (node instanceof HTMLCanvasElement && node.width > 0 && node.height > 0) {
    into.append(inSvg("image", {...place, href: node.toDataURL(), preserveAspectRatio: "none"}));
  }
  const group = style.overflowX === "visible" && style.opacity === "1" ? into : groupOf(drawing, into, style, place);
  for (const child of node.childNodes) drawNode(drawing, group, child);
}

const placeInPicture = ({left, top}, rectangle) => (
  {x: round(rectangle.left - left), y: round(rectangle.top - top), width: round(rectangle.width), height: round(rectangle.height)});
const round = (x) => Math.round(100 * x) / 100;

/** What scrolls, or is cut off, is so in the picture as well. */
function groupOf(drawing, into, {opacity, overflowX}, place) {
  const group = inSvg("g", opacity === "1" ? {} : {opacity});
  if (overflowX !== "visible") {
    const clip = inSvg("clipPath", {id: `clip-${++drawing.clips}`});
    clip.append(inSvg("rect", place));
    into.append(clip);
    group.setAttribute("clip-path", `url(#${clip.id})`);
  }
  into.append(group);
  return group;
}

const isSeen = (colour) => !/^(transparent|rgba\(.*, 0\)|.*\/ 0\))$/.test(colour);

/** Background, border and outline. */
function drawBox(drawing, into, style, place) {
  if (place.width === 0 || place.height === 0) return;
  const rx = Math.min(parseFloat(style.borderTopLeftRadius) || 0, place.width / 2, place.height / 2);
  if (isSeen(style.backgroundColor)) into.append(inSvg("rect", {...place, rx, fill: style.backgroundColor}));
  if (style.backgroundImage !== "none") into.append(inSvg("rect", {...place, rx, fill: backgroundOf(drawing, style)}));
  const sides = ["Top", "Right", "Bottom", "Left"].map((side) => ({
    width: style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`]), colour: style[`border${side}Color`]}));
  if (sides.every(({width, colour}) => width === sides[0].width && colour === sides[0].colour)) {
    frame(into, place, rx, sides[0].width, sides[0].colour, sides[0].width / 2);
  } else {
    drawSides(into, place, sides);
  }
  if (style.outlineStyle !== "none") {
    const width = parseFloat(style.outlineWidth);
    frame(into, place, rx, width, style.outlineColor, -parseFloat(style.outlineOffset) - width / 2);
  }
}

/** The outline of a rectangle, `inside` its edges. */
function frame(into, {x, y, width, height}, rx, thickness, colour, inside) {
  if (thickness === 0 || !isSeen(colour)) return;
  into.append(inSvg("rect", {x: x + inside, y: y + inside, width: Math.max(0, width - 2 * inside),
    height: Math.max(0, height - 2 * inside), rx, fill: "none", stroke: colour, "stroke-width": thickness}));
}

/** Lines along some edges. */
function drawSides(into, {x, y, width, height}, [top, right, bottom, left]) {
  const line = (side, x1, y1, x2, y2) => {
    if (side.width > 0 && isSeen(side.colour)) into.append(inSvg("line", {x1, y1, x2, y2, stroke: side.colour, "stroke-width": side.width}));
  };
  line(top, x, y + top.width / 2, x + width, y + top.width / 2);
  line(bottom, x, y + height - bottom.width / 2, x + width, y + height - bottom.width / 2);
  line(left, x + left.width / 2, y, x + left.width / 2, y + height);
  line(right, x + width - right.width / 2, y, x + width - right.width / 2, y + height);
}

/** The stripes of masked cells, or a colour bar from left to right: what backgrounds there are on the page. */
function backgroundOf({picture}, {backgroundImage}) {
  const known = [...picture.querySelectorAll("linearGradient, pattern")].find(({dataset}) => dataset.of === backgroundImage);
  if (known) return `url(#${known.id})`;
  const id = `fill-${picture.querySelectorAll("linearGradient, pattern").length}`;
  const colours = backgroundImage.match(/rgba?\([^)]*\)|color\([^)]*\)/g) ?? [];
  let fill;
  if (backgroundImage.startsWith("repeating")) {
    fill = inSvg("pattern", {id, width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(-45)"});
    fill.append(inSvg("rect", {width: 4, height: 1, fill: colours.at(-1)}));
  } else {
    fill = inSvg("linearGradient", {id});
    fill.append(...colours.map((colour, n) => inSvg("stop", {offset: n / (colours.length - 1), "stop-color": colour})));
  }
  fill.dataset.of = backgroundImage;
  picture.append(fill);
  return `url(#${id})`;
}

/** An SVG inside the element, with what style sheets say of its shapes written into them. */
function shapesOf(svg, place) {
  const copy = svg.cloneNode(true);
  const copies = [copy, ...copy.querySelectorAll("*")];
  for (const [n, shape] of [svg, ...svg.querySelectorAll("*")].entries()) {
    const style = getComputedStyle(shape);
    for (const name of STYLES_OF_SHAPES) copies[n].style.setProperty(name, style.getPropertyValue(name));
  }
  for (const [name, value] of Object.entries(place)) copy.setAttribute(name, value);
  return copy;
}

/** Each line of a text where it stands, and as wide as it is, whatever fonts there are where the picture is opened. */
function drawText(drawing, into, node) {
  if (!node.data.trim()) return;
  const style = getComputedStyle(node.parentElement);
  if (style.visibility === "hidden") return;
  const upright = style.writingMode !== "horizontal-tb";
  const {ascent, descent} = sizesOfFont(style);
  for (const {text, rectangle} of brokenLines(node, upright)) {
    const {x, y, width, height} = placeInPicture(drawing, rectangle);
    const share = descent / (ascent + descent);
    const at = upright ? {transform: `translate(${round(x + width * share)} ${y}) rotate(90)`, textLength: height}
      : {x, y: round(y + height * (1 - share)), textLength: width};
    const line = inSvg("text", {...at, lengthAdjust: "spacingAndGlyphs", fill: style.color, "font-family": style.fontFamily,
      "font-size": style.fontSize, "font-weight": style.fontWeight, "font-style": style.fontStyle}, forXml(text));
    line.style.whiteSpace = "pre";
    into.append(line);
  }
}

/** [{text, rectangle}]: the lines into which the browser has broken a text. */
function brokenLines(node, upright) {
  const range = document.createRange(), lines = [];
  const edge = upright ? "left" : "top";
  for (let n = 0; n < node.length; n++) {
    range.setStart(node, n);
    range.setEnd(node, n + 1);
    const rectangle = range.getBoundingClientRect();
    if (rectangle.width === 0 && rectangle.height === 0) continue; // a blank that the browser has left out
    const line = lines.at(-1);
    if (line && Math.abs(line[edge] - rectangle[edge]) < 2) line.end = n + 1;
    else lines.push({start: n, end: n + 1, [edge]: rectangle[edge]});
  }
  return lines.map(({start, end}) => {
    range.setStart(node, start);
    range.setEnd(node, end);
    return {text: node.data.slice(start, end).replace(/\s/g, " "), rectangle: range.getBoundingClientRect()};
  }).filter(({text}) => text.trim());
}

const fontSizes = new Map(); // by font

function sizesOfFont({font}) {
  if (!fontSizes.has(font)) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = font;
    const {fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent} = context.measureText("x");
    fontSizes.set(font, {ascent, descent});
  }
  return fontSizes.get(font);
}
