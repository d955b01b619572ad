"use strict";
// The picture of the map: an SVG with a group for every place, which is a button, and the lines between them.
//
// How to use:
//   mapPicture(layout, places) -> an svg; each place is a <g class="place" data-place="path">, its bars are still empty
//   setBar(picture, path, which, value, most)  the length of a bar, as a share of `most`: which is "value" or "gradient"

const WITH_LETTER = 15; // pixels of a norm that has one
const BOX_WORDS = {self: ["self-attention", "self"], cross: ["cross-attention", "cross"], feed_forward: ["feed-forward", "feed"]};

function mapPicture(layout, places) {
  const {width, height, rows, spots, lines} = layout;
  const picture = inSvg("svg", {class: `map-picture ${layout.density.lines}`, viewBox: `0 0 ${width} ${height}`, width, height,
    role: "group", "aria-label": "Map of the model: encoder above, decoder below, the forward pass to the right"});
  for (const row of rows) picture.append(...rowFrame(row, layout));
  picture.append(...lines.map(({d, from, to, kind}) => inSvg("path", {d, class: `way ${kind}`, "data-from": from ?? "", "data-to": to})));
  picture.append(...memoryName(lines.filter(({kind}) => kind === "memory"), layout));
  for (const place of places) picture.append(placeGroup(place, spots.get(place.path), layout.density));
  return picture;
}

/** What stands behind the places of a row: its name, its layers and the line that the bars stand on; in the first, what N stands for. */
function rowFrame({name, y, base, layers, end}, {density: {norm, between}}) {
  const tight = norm < WITH_LETTER, around = Math.min(4, between / 2 - 1);
  const layerFrame = ({layer, x, width}) => [
    inSvg("rect", {class: "layer", x: x - around, y, width: width + 2 * around, height: base - y + 3, rx: 6}),
    inSvg("text", {class: "layer-name", x: x + 2, y: y + 12}, tight ? String(layer + 1) : `layer ${layer + 1}`),
    ...(tight || y > 0 || layer > 0 ? [] : [inSvg("text", {class: "layer-name", x: x + width, y: y + 12, "text-anchor": "end"}, "N: norm")])];
  return [...layers.flatMap(layerFrame), ...(tight && layers[0]?.x < 70 ? [] : [inSvg("text", {class: "row-name", x: 2, y: y + 12}, name)]),
    inSvg("path", {class: "base", d: `M 2 ${base + 0.5} H ${end - 2}`})];
}

/** Beside the first way down from the memory, in the line of the layers' names. */
function memoryName(ways, {spots, rows, density}) {
  if (ways.length === 0 || density.lines === "upright") return [];
  return [inSvg("text", {class: "layer-name", x: spots.get(ways[0].to).x + 6, y: rows[1].y + 12}, "memory")];
}

/** One place: its shape, its name, its two bars, and the room around it that can be clicked. */
function placeGroup(place, spot, density) {
  const {x, y, width, height, hitX, hitWidth, base} = spot;
  const top = rowTop(spot.row, density);
  const bar = (which, left) => inSvg("rect",
    {class: `bar ${which}`, x: left, y: base, width: density.bar, height: 0, "data-base": base});
  return inSvg("g", {class: `place ${place.kind}`, role: "button", tabindex: "-1", "data-place": place.path, "data-key": `map:${place.path}`},
    inSvg("rect", {class: "hit", x: hitX, y: top, width: hitWidth, height: base - top + 3}),
    ...shapeOf(place, {x, y, width, height}), ...wordsOf(place, {x, y}, density),
    bar("value", x - density.bar), bar("gradient", x + 0.5));
}

function shapeOf({kind}, {x, y, width, height}) {
  if (kind === "residual") {
    const arm = 0.3 * width;
    return [inSvg("circle", {class: "shape", cx: x, cy: y, r: width / 2}),
      inSvg("path", {class: "plus", d: `M ${x - arm} ${y} H ${x + arm} M ${x} ${y - arm} V ${y + arm}`})];
  }
  return [inSvg("rect", {class: "shape", x: x - width / 2, y: y - height / 2, width, height, rx: Math.min(5, width / 3)})];
}

/** The name in a box; a norm has its letter where there is room. */
function wordsOf(place, {x, y}, {lines, norm}) {
  const text = (content, dy = 0, more = {}) =>
    inSvg("text", {class: "box-name", x, y: y + dy, "text-anchor": "middle", "dominant-baseline": "central", ...more}, content);
  if (place.kind === "residual") return [];
  if (place.kind === "norm") return norm < WITH_LETTER ? [] : [text("N")];
  const [first, second] = linesOf(place, lines);
  if (lines === "upright") return [text(first, 0, {transform: `rotate(-90 ${x} ${y})`})];
  return second ? [text(first, -8), text(second, 8, {class: "box-name second"})] : [text(first)];
}

/** The name of a box, in one line; of what stands on the stream, in two where there is room. */
function linesOf(place, lines) {
  const tokens = place.side === "encoder" ? "source" : "target";
  if (place.kind === "embedding") return lines === "full" ? ["embedding", tokens] : [tokens];
  if (place.kind === "output") return lines === "upright" ? ["output"] : ["output", "loss"];
  const [long, short] = BOX_WORDS[place.kind === "attention" ? (isCross(place) ? "cross" : "self") : place.kind];
  return [lines === "full" ? long : short];
}

const placeIn = (picture, path) => picture.querySelector(`[data-place="${path}"]`);

function setBar(picture, path, which, value, most) {
  const bar = placeIn(picture, path).querySelector(`.bar.${which}`);
  const height = most > 0 ? value / most * BAR_HEIGHT : 0;
  bar.setAttribute("y", Number(bar.dataset.base) - height);
  bar.setAttribute("height", height);
}
