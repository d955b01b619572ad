"use strict";
// How the latest steps went, in words.
//
// How to use:
//   stepWords(view) -> sentences; none before the first step, and of other texts

function stepWords(view) {
  const report = latestReport();
  if (report === null) return [];
  const {count, from, to, stopped, rate} = report;
  const now = formatNumber(to.loss, 4);
  if (stopped !== null) return [`η = ${rateText(rate)} is too large: a step made the loss ${stopped}, and was taken back; now it is ${now}.`];
  const moved = to.loss < from.loss ? "falls" : to.loss > from.loss ? "rises" : "stays";
  return [`${count === 1 ? "One step" : `${count} steps`}: the loss ${moved} from ${formatNumber(from.loss, 4)} to ${now}.`,
    ...choiceWords(view), ...promiseWords(report), ...mistakeWords(report)];
}

/** What has become of the token that is asked for, in the chosen row, and of the one that the trained model would write. */
function choiceWords(view) {
  const {row, asked, former} = choiceOf(view);
  const [P, before] = [view.run, trainedRun()].map((run) => run.P[view.state.item]);
  const share = (id) => `“${tokenOf(id)}” has ${percent(P.at(row, id))} (${percent(before.at(row, id))} in the trained model)`;
  return [`${share(asked)}${former === asked ? "" : `, ${share(former)}`}.`];
}

/** What the gradient said of a single step, and what came of it. */
function promiseWords({count, from, to, rate, promised, slope}) {
  if (count !== 1) return [];
  const change = `a change of ${formatNumber(promised, 3)}`;
  if (slope !== null) return [`The wrong gradient promised ${change}; along this step the true slope is ${formatNumber(slope, 3)}.`];
  if (to.loss <= from.loss) return [`The gradient promised ${change}; it is the slope at the old weights, and the loss is no straight line.`];
  return [`The gradient promised ${change}: that holds only nearby, and with η = ${rateText(rate)} the step goes too far.`];
}

/** Where right steps lead. */
function mistakeWords({broken, to, right}) {
  if (right === null) return [];
  return [`${broken === null ? "Earlier steps went with a wrong gradient" : `The gradient is wrong (${broken.title})`}; after as many right steps `
    + `the loss would be ${formatNumber(right, 4)}.`,
  ...(broken !== null && to.loss <= right ? ["A lower loss is no proof that a gradient is right; its checks are."] : [])];
}

const rateText = (rate) => (rate < 1e-4 ? rate.toFixed(5) : String(rate));
