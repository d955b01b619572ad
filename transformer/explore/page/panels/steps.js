"use strict";
// Steps against the gradient: the weights of the model move, and the page follows.
//
// How to use:
//   stepping                {rule, rates, report, …}: what the reader has chosen, and how the latest steps went
//   takeSteps(count)        one after the other, each drawn; whatever else changes the model or the sentences stops them
//   stopSteps(), undoStep(), backToTrained()
//   isStepping()            whether steps are being taken
//   historyBeside()         the history of as many right steps from the same start, if a mistake was made; or null
//   trainedRun()            what the model computes of these sentences with the weights of the page
//   latestReport() -> how they went; null if that was with other texts or other weights:
//       {count, from, to: entries of session.history, rate, promised, slope, broken, right, stopped}
//       promised  what the gradient says of the change of the loss: Σ gradient · movement
//       slope     what the right gradient says of the same movement; null where no mistake is made
//       broken    the mistake, or null
//       right     the loss after as many right steps from the same start; null if no step was wrong
//       stopped   "no number" or "infinite": the loss of a step that was taken back; or null

const RATES = [-5, -4, -3, -2, -1, 0].flatMap((power) => [1, 2, 5].map((digit) => Number(`${digit}e${power}`))).concat(10);

const stepping = {
  rule: "sgd",
  rates: {sgd: 0.005, adam: 1e-4},
  report: null,
  turn: null,  // {count} of the steps that are being taken
  right: null, // the session that goes along with the right gradient
};

const isStepping = () => stepping.turn !== null;

/** Of the page as it is; steps go on only while nothing else changes it. */
const stepKey = () => JSON.stringify([session.version, state.item, session.ids, optionsOf(state)]);

const reportKey = () => JSON.stringify([session.version, session.ids]);

const latestReport = () => (stepping.report?.key === reportKey() ? stepping.report : null);

async function takeSteps(count) {
  const turn = {count};
  const from = {loss: currentRun().loss};
  Object.assign(stepping, {turn, report: null});
  let taken = 0, key = stepKey();
  renderTabs(currentView()); // with a button that stops them
  const goesOn = () => stepping.turn === turn && stepKey() === key && taken < count && !stepping.report?.stopped;
  while (goesOn()) {
    const step = await takeOneStep();
    if (step.stopped === null) taken += 1;
    key = stepKey();
    stepping.report = {key: reportKey(), count: taken, from, to: session.history.at(-1), ...step};
    if (!goesOn()) break;
    if (motionAllowed()) setState({});
    await new Promise((drawn) => { requestAnimationFrame(() => setTimeout(drawn)); });
  }
  if (stepping.turn === turn) stepping.turn = null;
  setState({});
}

/** With the gradient of the page, which a mistake may have made wrong; the right one goes along. A loss that is no number
 * would leave nothing to go on from, so that step is taken back. */
async function takeOneStep() {
  const {rule, rates} = stepping, options = optionsOf(state);
  const step = {rule, rate: rates[rule], item: state.item};
  const {broken} = currentRun(options), before = session.parameters;
  const parameterGradients = await settled(() => currentRun(options).parameterGradients);
  const rightGradients = broken && await settled(() => currentRun({...options, broken: null}).parameterGradients);
  if (historyBeside() === null) stepping.right = broken ? session.fork() : null;
  await settled(() => session.step(step, options));
  await settled(() => stepping.right?.step(step, {...options, broken: null}));
  const {loss} = session.history.at(-1);
  const promised = innerSum(parameterGradients, before, session.parameters);
  const slope = broken && innerSum(rightGradients, before, session.parameters);
  const right = stepping.right?.history.at(-1).loss ?? null;
  const went = {rate: step.rate, promised, slope, broken, right};
  if (Number.isFinite(loss)) return {...went, stopped: null};
  goBack();
  return {...went, stopped: Number.isNaN(loss) ? "no number" : "infinite"};
}

/** Σ g·(w′ − w): how the loss would change if it were as straight as the gradient says. */
function innerSum(gradients, before, after) {
  let sum = 0;
  for (const [name, {data: w}] of before) {
    const g = gradients.get(name).data, moved = after.get(name).data;
    for (let n = 0; n < w.length; n++) sum += g[n] * (moved[n] - w[n]);
  }
  return sum;
}

function stopSteps() {
  stepping.turn = null;
}

/** Both sessions; where the two have never gone apart one is enough. */
function goBack() {
  const beside = historyBeside() !== null;
  session.undo();
  if (beside) stepping.right.undo();
  const {right} = stepping;
  if (right && right.history.every(({loss}, n) => loss === session.history[n]?.loss)) stepping.right = null;
}

function undoStep() {
  stopSteps();
  goBack();
  setState({});
}

function backToTrained() {
  stopSteps();
  session.reset();
  stepping.right = null;
  setState({});
}

/** It is beside the other only as long as both are of the same sentences and of as many steps. */
function historyBeside() {
  const {right} = stepping;
  const goesAlong = right !== null && right.history.length === session.history.length
    && right.items.every((item, n) => item === session.items[n]);
  return goesAlong ? right.history : null;
}

function trainedRun() {
  const fork = Object.assign(session.fork(), {runs: session.runs});
  fork.reset();
  return fork.run({item: state.item, options: optionsOf(state)});
}
