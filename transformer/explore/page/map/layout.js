"use strict";
// Where everything lies on the map: numbers only, no document.
//
// Each stack is a row, forward to the right. A straight line, the residual stream, runs through it. A sublayer is a branch
// that leaves the stream, passes through a box above it and comes back at an addition. What lies on the stream itself
// (embedding, additions, norms after an addition, output) changes the stream. The memory leaves the end of the encoder's row, runs
// between the rows and drops into every cross-attention.
//
// How to use:
//   mapLayout(places, width, isPhone) -> {density, width, height, rows: [{name, y, stream, base, end, layers: [{layer, x, width}]}],
//     spots: Map path -> {path, row, x, y, width, height, hitX, hitWidth, base, branched}, lines: [{d, from, to, kind}]}
//   x and y are the middle of a spot; base is where its bars stand; branched: it lies on a branch, not on the stream.
//   from and to are paths, in the order of the forward run.

// From the roomiest to the tightest: the first one that fits is taken; on a phone the last. `box` is the least width of a box,
// `most` the largest; `lines` says how its name is written: in full, short, upright, or not at all; `title` is the height of
// the line above a row that names its layers, `drop` that between boxes, stream and bars.
const DENSITIES = [
  {lines: "full", box: 108, most: 120, boxHeight: 22, norm: 18, normHeight: 18, plus: 16, gap: 5, turn: 7, between: 10, margin: 6, bar: 6},
  {lines: "short", box: 52, most: 96, boxHeight: 22, norm: 17, normHeight: 18, plus: 16, gap: 3, turn: 6, between: 8, margin: 5, bar: 5},
  {lines: "short", box: 46, most: 50, boxHeight: 22, norm: 9, normHeight: 18, plus: 12, gap: 2, turn: 2.5, between: 5, margin: 3, bar: 4},
  {lines: "upright", box: 18, most: 30, boxHeight: 50, norm: 8, normHeight: 22, plus: 10, gap: 2, turn: 2.5, between: 5, margin: 3, bar: 3},
  {lines: "none", title: 1, drop: 4, box: 12, most: 24, boxHeight: 12, norm: 4, normHeight: 10, plus: 8, gap: 2, turn: 2, between: 4, margin: 2, bar: 3},
].map((density) => ({title: 16, drop: 9, ...density}));
const BAR_HEIGHT = 16; // of the longest bar
const BETWEEN_ROWS = 9; // where the memory runs

const isBox = ({kind}) => kind !== "norm" && kind !== "residual";
const isSublayer = ({kind}) => kind === "attention" || kind === "feed_forward";

/** Whether a place lies on a branch: the sublayer, and the norm in front of it where there is one. */
const onBranch = (row, n) => isSublayer(row[n]) || row[n].path === `${row[n + 1]?.path}_residual.norm`;

/** The places of the two stacks; a stack without places has no row. */
function stacksOf(places) {
  const encoder = places.filter(({side}) => side === "encoder");
  const decoder = places.filter(({side}) => side !== "encoder");
  return [{name: "encoder", places: encoder}, {name: "decoder", places: decoder}].filter((stack) => stack.places.length > 0);
}

function mapLayout(places, width, isPhone) {
  const stacks = stacksOf(places);
  const least = (density) => Math.max(...stacks.map((stack) => rowWidth(stack.places, density, density.box)));
  const density = DENSITIES.find((one) => !isPhone && least(one) <= width) ?? DENSITIES.at(-1);
  const room = (box) => Math.max(...stacks.map((stack) => rowWidth(stack.places, density, box)));
  let box = density.box;
  while (box < density.most && room(box + 1) <= width) box += 1;

  const spots = new Map(), rows = [], lines = [];
  for (const [n, stack] of stacks.entries()) rows.push(layRow(stack, n, density, box, spots, lines));
  if (rows.length === 2) lines.push(...memoryLines(rows[0], stacks[1].places, stacks[0].places.at(-1), spots));
  return {density, width: Math.ceil(room(box)), height: rowTop(stacks.length, density) - BETWEEN_ROWS + 4, rows, spots, lines};
}

/** Each row is a line with titles, the boxes, the stream and the bars. */
const streamBelow = (density) => density.title + density.boxHeight + density.drop;
const rowTop = (n, density) => n * (streamBelow(density) + density.drop + BAR_HEIGHT + BETWEEN_ROWS);

/** Lay out one row: its spots and lines join the others'. */
function layRow({name, places}, rowNumber, density, box, spots, lines) {
  const top = rowTop(rowNumber, density);
  const stream = top + streamBelow(density), base = stream + density.drop + BAR_HEIGHT;
  const [boxTop, branch] = [top + density.title, top + density.title + density.boxHeight / 2];
  const row = {name, y: top, stream, base, end: 0, layers: []};
  let right = density.margin;
  for (const [n, place] of places.entries()) {
    const {width} = sizeOf(place, density, box);
    const left = right + gapBefore(places, n, density);
    const branched = onBranch(places, n);
    const whole = isBox(place) && !branched; // a box on the stream is as high as the branches beside it
    const [y, height] = whole ? [(boxTop + stream + 6) / 2, stream + 6 - boxTop]
      : branched ? [branch, isBox(place) ? density.boxHeight : density.normHeight] : [stream, 16];
    right = left + width;
    spots.set(place.path, {path: place.path, row: rowNumber, x: left + width / 2, y, width, height, base, branched});
    noteLayer(row, place, left - (branched ? density.turn : 0), right);
  }
  row.end = right + density.margin;
  giveHits(places.map(({path}) => spots.get(path)), row.end);
  lines.push(...rowLines(places, spots, stream, density));
  return row;
}

function sizeOf(place, density, box) {
  if (place.kind === "norm") return {width: density.norm};
  return {width: place.kind === "residual" ? density.plus : box};
}

/** The room left of a place: more where a line turns, and between layers. */
function gapBefore(places, n, density) {
  if (n === 0) return 0;
  const leaves = onBranch(places, n) && !onBranch(places, n - 1), returns = places[n].kind === "residual" && onBranch(places, n - 1);
  const another = places[n].layer !== places[n - 1].layer;
  return density.gap + (leaves || returns ? density.turn : 0) + (another ? density.between : 0);
}

function rowWidth(places, density, box) {
  return places.reduce((sum, place, n) => sum + gapBefore(places, n, density) + sizeOf(place, density, box).width,
    2 * density.margin);
}

/** What can be pointed at: the whole height of the row, halfway to the neighbours. */
function giveHits(spots, end) {
  const edge = (n) => (spots[n].x + spots[n].width / 2 + spots[n + 1].x - spots[n + 1].width / 2) / 2;
  spots.forEach((spot, n) => {
    spot.hitX = n === 0 ? 0 : edge(n - 1);
    spot.hitWidth = (n === spots.length - 1 ? end : edge(n)) - spot.hitX;
  });
}

function noteLayer(row, {layer}, left, right) {
  if (layer === null || layer === undefined) return;
  const known = row.layers.find((one) => one.layer === layer);
  if (known) known.width = right - known.x;
  else row.layers.push({layer, x: left, width: right - left});
}

/** The lines of one row: along the stream, and out to each branch and back. */
function rowLines(places, spots, stream, {turn}) {
  const lines = [];
  let [before, branch] = [null, null]; // the last spot on the stream, and on the branch that is open
  for (const place of places) {
    const spot = spots.get(place.path);
    const left = spot.x - spot.width / 2;
    if (spot.branched) {
      const from = branch ?? before;
      const d = branch ? `M ${rightOf(branch)} ${spot.y} H ${left}` : turning(left - turn, stream, left, spot.y);
      lines.push({d, from: from?.path ?? null, to: spot.path, kind: "branch"});
      branch = spot;
      continue;
    }
    if (before) lines.push({d: `M ${rightOf(before)} ${stream} H ${left}`, from: before.path, to: spot.path, kind: "stream"});
    if (branch) {
      const [start, end] = [rightOf(branch), spot.x];
      lines.push({d: turning(start, branch.y, end, spot.y - 8), from: branch.path, to: spot.path, kind: "branch"});
    }
    [before, branch] = [spot, null];
  }
  return lines;
}

const rightOf = (spot) => spot.x + spot.width / 2;

/** A line between two heights: level at the end on the branch, and into the stream from the side or from above. */
function turning(x, y, toX, toY) {
  return y > toY ? `M ${x} ${y} C ${toX} ${y} ${x} ${toY} ${toX} ${toY}` : `M ${x} ${y} Q ${toX} ${y} ${toX} ${toY}`;
}

/** From the end of the encoder's row, between the rows, into every cross-attention. */
function memoryLines(encoder, places, last, spots) {
  const start = encoder.end + 4, bus = encoder.base + 6, from = spots.get(last.path);
  return places.filter(isCross).map(({path}) => {
    const {x, y, height} = spots.get(path);
    const turn = Math.max(-5, Math.min(5, (x - start) / 2)); // to the left or to the right
    const d = `M ${rightOf(from)} ${encoder.stream} H ${start - 5} Q ${start} ${encoder.stream} ${start} ${encoder.stream + 5}`
      + ` V ${bus - 5} Q ${start} ${bus} ${start + turn} ${bus} H ${x - turn} Q ${x} ${bus} ${x} ${bus + 5} V ${y - height / 2}`;
    return {d, from: last.path, to: path, kind: "memory"};
  });
}

const isCross = ({path}) => path.endsWith("cross_attention");
