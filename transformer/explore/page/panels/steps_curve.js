"use strict";
// Curves over the steps, as SVG.
//
// How to use:
//   stepCurve({title, lines: [{name, kind, values}], top, width, height}) -> an element
//       kind   "now", "right", "wrong" or "before": its colour (steps.css)
//       top    the largest value that there is room for; what is larger leaves the picture, and has its number beside it

const LEAST_STEPS = 20; // that there is room for at first, so that the curve grows into a frame that stays; it widens by tens

function stepCurve({title, lines, top, width = 330, height = 130}) {
  const margin = {left: 46, right: 12, top: 10, bottom: 34};
  const count = Math.max(...lines.map(({values}) => values.length)) - 1;
  const steps = Math.max(LEAST_STEPS, 10 * Math.ceil(count / 10));
  const x = (step) => margin.left + (width - margin.left - margin.right) * step / steps;
  const y = (value) => height - margin.bottom - (height - margin.top - margin.bottom) * Math.min(1.2, value / top);
  const frame = {left: x(0), right: x(steps), bottom: y(0), top: y(top)};
  const picture = inSvg("svg", {class: "curve", width, height, viewBox: `0 0 ${width} ${height}`, role: "img"});
  picture.setAttribute("aria-label", `${title}: ${lines.map(({name, values}) => `${name}, ${values.map((value) => formatNumber(value, 3)).join(", ")}`).join("; ")}`);
  picture.append(...axesOf(frame, {x, y, top, steps}));
  for (const line of lines) picture.append(...drawnLine(line, {x, y, top}));
  return picture;
}

/** The frame: zero and the top, and the steps. */
function axesOf({left, right, top: ceiling, bottom}, {x, top, steps}) {
  const text = (at, content, anchor = "middle") => inSvg("text", {...at, "text-anchor": anchor}, content);
  return [
    inSvg("path", {class: "axis", d: `M ${left} ${ceiling} V ${bottom} H ${right}`}),
    text({x: left - 6, y: bottom + 4}, "0", "end"), text({x: left - 6, y: ceiling + 4}, formatNumber(top, 2), "end"),
    ...[0, steps / 2, steps].map((step) => text({x: x(step), y: bottom + 16}, String(step))),
    text({x: (left + right) / 2, y: bottom + 30}, "steps"),
  ];
}

/** As far as its values are numbers, with a point at the end. */
function drawnLine({kind, values}, {x, y, top}) {
  const end = values.findIndex((value) => !Number.isFinite(value));
  const known = end < 0 ? values : values.slice(0, end);
  if (known.length === 0) return [];
  const last = known.length - 1;
  const line = inSvg("polyline", {class: `curve-line ${kind}`, points: known.map((value, n) => `${x(n)},${y(value)}`).join(" ")});
  const point = inSvg("circle", {class: `curve-point ${kind}`, cx: x(last), cy: y(Math.min(known[last], top)), r: 3.5});
  if (known[last] <= top) return [line, point];
  return [line, point, inSvg("text", {class: "beyond", x: x(last), y: y(top) + 16, "text-anchor": last > 3 ? "end" : "start"}, `↑ ${formatNumber(known[last], 3)}`)];
}

/** What a line means. */
const curveKey = (lines) => build("p", {class: "curve-key"}, ...lines.map(({name, kind}) => (
  build("span", {}, build("span", {class: `curve-sign ${kind}`}), name))));
