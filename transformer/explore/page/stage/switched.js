"use strict";
// What the switches ÷ √d_k and masks have changed, in the numbers of the chosen head.
//
// How to use:
//   switchedTexts(view) -> an element for each that is off

function switchedTexts(view) {
  const maskIsOff = hasMask(view) && !view.state.masking;
  const texts = [...(view.state.scaling ? [] : [withoutScaling(view)]), ...(maskIsOff ? [withoutMask(view)] : [])];
  return texts.map((text) => make("p", "switched", ...withSubscripts(text)));
}

/** The chosen head with one switch as it is, and with it on; without a mistake, which would change dS too. */
function offAndOn({state}, name) {
  const [off, on] = [{}, {[name]: true}].map((change) => (
    currentResult({...optionsOf(state), broken: null, ...change}).heads[state.head]));
  return {off, on};
}

function withoutScaling(view) {
  const {off, on} = offAndOn(view, "scaling");
  const width = off.Q.cols;
  return `Without ÷ √d_k, in every attention of the model, S is R itself: √d_k = ${formatShort(Math.sqrt(width))} times as large as with it (d_k = ${width}). `
    + `The largest weight of a row, in the mean, ${risesOrFalls(meanOfLargest(on.A), meanOfLargest(off.A))}. ${normOfScores(off, on)}`;
}

function withoutMask(view) {
  const {off, on} = offAndOn(view, "masking");
  const forbidden = forbiddenCells(on.mask);
  if (forbidden.length === 0) return "Masks are off, and nothing changes: in this sentence they hide nothing.";
  const weight = forbidden.reduce((sum, [row, col]) => sum + off.A.at(row, col), 0);
  const gradient = Math.hypot(...forbidden.map(([row, col]) => off.dS.at(row, col)));
  return `Masks are off: queries look at the future too. The ${forbidden.length} forbidden cells of A, 0 `
    + `before, now hold ${formatShort(100 * weight / off.A.rows)} % of all weight; dS, exactly 0 there before, has the norm `
    + `${formatNumber(gradient, 3)} in them. ${normOfScores(off, on)} Look at A, then at dS.`;
}

const normOfScores = (off, on) => `‖dS‖ ${risesOrFalls(normOf(on.dS), normOf(off.dS))}.`;

/** "falls from 0.212 to 0.0713" */
function risesOrFalls(before, after) {
  const verb = after > before ? "rises" : "falls";
  return before === after ? `stays ${formatNumber(after, 3)}` : `${verb} from ${formatNumber(before, 3)} to ${formatNumber(after, 3)}`;
}

/** Three digits, and no zeros behind them: "4", "1.41". */
const formatShort = (value) => formatNumber(value, 3).replace(/\.0+$/, "");

const meanOfLargest = (matrix) => (
  Array.from({length: matrix.rows}, (_, i) => Math.max(...matrix.row(i))).reduce((sum, x) => sum + x, 0) / matrix.rows);

const forbiddenCells = (mask) => Array.from(mask.data.keys()).filter((n) => mask.data[n] === 0)
  .map((n) => [Math.floor(n / mask.cols), n % mask.cols]);
