"use strict";
// How large the grids of an equation are drawn, so that all of them stand in the room that the stage has.
//
// How to use:
//   fittedSizes(parts, room) -> [{width, height, numbers, titles}], of the cells of each part; titles: the lines of the longest caption
//       parts  [{matrix, rowLabels, colLabels, sign, title}]    sign: pixels that the signs before the grid take; title: those of
//              its caption, in one line
//       room   {width, height} in pixels
//
// The parts stand in one line, or in as many as there must be. First all numbers are tried, then images whose cells are as
// large as fits; a column of few cells keeps its numbers beside images. What would be too small to read scrolls instead.

const CELL = {least: 2, most: 26, ofScrolling: 12, ofNumber: 1.35, rowHeight: 1.5}; // the latter two in letters' heights
const LEGIBLE = 10; // of the score: with less, the stage scrolls
const CAPTION = 3.2; // letters' heights above and below a grid: its caption, its colour bar and the gap to the next line
const TITLE = 1.4; // of another line of a caption
const LEGEND = 9.5; // letters' heights that the colour bar below a grid takes
const LINE = 12; // what another line costs, in tenths of a pixel of a cell
const FEW_COLUMNS = 3, MOST_COLUMNS = 24; // with numbers in any case; without them

function fittedSizes(parts, room) {
  const letter = rem();
  const measured = parts.map(({rowLabels, ...part}) => ({...part, isNamed: rowLabels.some((label, n) => label !== String(n)),
    beside: widthOfLabels(rowLabels) + 10, ofNumber: part.matrix.cols > MOST_COLUMNS ? Infinity : widthOfNumbers(part.matrix)}));
  const best = (height, most) => [1, 2, 3, 4].flatMap((lines) => candidatesIn(measured, lines, {width: room.width, height}, letter, most))
    .reduce((found, one) => (one.score > found.score ? one : found), {score: -Infinity});
  const fitting = best(room.height, CELL.most);
  return (fitting.score > LEGIBLE ? fitting : best(Infinity, CELL.ofScrolling)).sizes ?? parts.map(() => ({width: CELL.least, height: CELL.least}));
}

/** The best with all numbers, and the best without, in so many lines; none where nothing fits. */
function candidatesIn(measured, lines, room, letter, most) {
  const numbers = sizesWith(measured, lines, room, letter, ({ofNumber}) => ofNumber);
  if (numbers && numbers.every(({height}) => height >= CELL.ofNumber * letter)) {
    return [{sizes: numbers.map((size) => ({...size, numbers: true})), score: 1000 - lines}];
  }
  for (let cell = most; cell >= CELL.least; cell--) {
    const width = ({matrix, ofNumber}) => (matrix.cols <= FEW_COLUMNS && ofNumber < Infinity ? ofNumber : cell);
    const sizes = sizesWith(measured, lines, room, letter, width);
    if (!sizes) continue;
    const shown = sizes.map((size, n) => ({...size, numbers: width(measured[n]) !== cell && size.height >= CELL.ofNumber * letter}));
    return [{sizes: shown, score: 10 * Math.min(...shown.map((size, n) => legibility(measured[n], size))) - LINE * lines}];
  }
  return [];
}

/** In pixels of a cell; rows with names need height. */
const legibility = ({isNamed}, {width, height}) => (isNamed ? Math.min(width, height / 2) : 2 * Math.min(width, height));

/** Cells of these widths, as high as the lines allow; null if the parts do not fit into so many lines. */
function sizesWith(measured, lines, room, letter, widthOf) {
  const boxes = measured.map((part) => Math.max(LEGEND * letter, part.matrix.cols * widthOf(part) + part.beside));
  const titles = Math.max(...measured.map(({title}, n) => Math.ceil(title / boxes[n])));
  const high = room.height / lines - (CAPTION + (titles - 1) * TITLE) * letter;
  const heights = measured.map((part) => {
    const width = widthOf(part), height = Math.floor((high - heightOfLabels(part.colLabels, width)) / part.matrix.rows);
    return Math.min(height, CELL.most, Math.max(2 * width, (part.isNamed ? CELL.rowHeight : 1) * letter));
  });
  const sizes = measured.map((part) => ({width: widthOf(part), titles, // equal rows are equally high
    height: Math.min(...heights.filter((_, n) => measured[n].matrix.rows === part.matrix.rows))}));
  if (sizes.some(({width, height}) => height < CELL.least || width === Infinity)) return null;
  return linesTaken(boxes.map((box, n) => measured[n].sign + box), room.width) <= lines ? sizes : null;
}

/** As the browser breaks them. */
function linesTaken(widths, room) {
  let [lines, used] = [1, 0];
  for (const width of widths) {
    if (width > room) return Infinity;
    if (used + width > room) [lines, used] = [lines + 1, 0];
    used += width;
  }
  return lines;
}
