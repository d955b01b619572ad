"use strict";
// How the latest steps went, in words.
//
// How to use:
//   stepWords(view) -> sentences; none before the first step, and of other texts

function stepWords(view) {
  const report = latestReport();
  if (report === null) return [];
  const {did, count, from, to, stopped} = report;
  const now = formatNumber(to.loss, 4);
  if (did === "undo") return [`Taken back: the loss is ${now} again.`];
  if (did === "reset") return [`The weights are those of the trained model again, and the loss is ${now}.`];
  if (stopped !== null) return [...stoppedWords(report), ...(count > 0 ? [`The step before left a loss of ${now}.`] : [])];
  const moved = to.loss < from.loss ? "falls" : to.loss > from.loss ? "rises" : "stays";
  return [`${count === 1 ? "One step" : `${count} steps`}: the loss ${moved} from ${formatNumber(from.loss, 4)} to ${now}.`,
    ...choiceWords(view), ...promiseWords(report), ...mistakeWords(report), ...peakWords(report)];
}

/** What has become of the token that is asked for, in the chosen row, and of the one that the trained model would write. */
function choiceWords(view) {
  const {row, asked, former} = choiceOf(view);
  const [P, before] = [view.run, trainedRun()].map((run) => run.P[view.state.item]);
  const share = (id) => `“${tokenOf(id)}” has ${percent(P.at(row, id))} (${percent(before.at(row, id))} in the trained model)`;
  return [`${share(asked)}${former === asked ? "" : `, ${share(former)}`}.`];
}

const stoppedWords = ({stopped, rate}) => [`η = ${rateText(rate)} is too large: a step made the loss ${stopped}, and was taken back.`];

/** What the gradient said of a single step, and what came of it. */
function promiseWords({count, from, to, rate, promised, slope}) {
  if (count !== 1) return [];
  const change = `a change of ${formatNumber(promised, 3)}`;
  if (slope !== null) return [`The wrong gradient promised ${change}; along this step the true slope is ${formatNumber(slope, 3)}.`];
  if (to.loss <= from.loss) return [`The gradient promised ${change}; it is the slope at the old weights, and the loss is no straight line.`];
  return [`The gradient promised ${change}: that holds only nearby, and with η = ${rateText(rate)} the step goes too far.`];
}

/** The wrong gradient beside the right one, and where right steps lead. */
function mistakeWords({count, fromTrained, broken, beside, to, right}) {
  if (right === null) return [];
  const start = fromTrained ? "the trained model" : "the same start";
  const instead = `after as many right steps from ${start} `
    + (Number.isFinite(right) ? `the loss would be ${formatNumber(right, 4)}.` : "the loss would be no number: η is too large.");
  if (broken === null) return [`Earlier steps went with a wrong gradient; ${instead}`];
  const {ratio, angle} = beside;
  return [`${count === 1 ? "The" : "The last"} gradient was wrong (${broken.title}): ${formatNumber(ratio, 2)} times as long as the right one, `
    + `and ${formatNumber(angle, 2)}° aside; ${instead}`,
  ...(to.loss <= right ? ["A lower loss is no proof that a gradient is right; its checks are."] : [])];
}

/** Where the loss had been far above its start in between. */
function peakWords({count, from, to, rate}) {
  const losses = session.history.slice(-count).map(({loss}) => loss);
  const peak = Math.max(...losses);
  if (count === 1 || peak <= 1.02 * from.loss) return [];
  const where = peak === to.loss ? "It is still rising" : `On the way it rose to ${formatNumber(peak, 4)}`;
  return [`${where}: η = ${rateText(rate)} is too large.`];
}

const rateText = (rate) => String(rate).replace("1e-5", "0.00001").replace("2e-5", "0.00002").replace("5e-5", "0.00005");
