"use strict";
// Telling a story: which stop it stands at, what the page shows there, and the actions that belong to it.
//
// How to use:
//   tellableStories() -> the stories of the page that can be told here
//   enterStop(id, number)      the page shows what the stop speaks of; stops are counted from 0
//   leaveStory()               the page stays as it is
//   followStory(view)          after every redraw: keeps what is told in step with the state, which the reader may change

const told = {story: null, stop: 0, sentence: null, subject: null, former: null, place: null, before: null, now: null, version: null, problem: null,
  begun: false};
let asked = location.hash; // the address that the page was opened with, or that was typed since
addEventListener("hashchange", () => { asked = location.hash; });
const STORY_STEP = {rule: "sgd", rate: 0.05};

/** Whether a story is told at this moment. */
const isTold = () => state.story !== null && told.subject !== null;

const storyOf = (id) => page.stories.find((story) => story.id === id) ?? null;

/** They are about a cross-attention. */
const tellableStories = () => (page.places.some(isCross) ? page.stories : []);

async function enterStop(id, number) {
  const stop = storyOf(id).stops[number];
  await settled(() => prepare(id, number));
  setState({story: id, stop: number, panel: "step", ...PLAIN, ...stateOf(stop)});
  if (stop.do === "step") takeStep();
  showTargets(true);
  if (stop.do === "sweep") sweepMap("backward", motionAllowed());
}

/** What the stop's texts are filled from. A step of the stop before is taken back. */
function prepare(id, number) {
  takeStepBack();
  const story = storyOf(id), {state: {place = "attention", symbol} = {}} = story.stops[number];
  const subject = subjectOf(story.about);
  if (told.story !== id) told.former = told.subject; // of the story before
  Object.assign(told, {story: id, stop: number, sentence: sentenceKey(), subject, before: sceneWith(PLAIN)});
  told.place = pathNamed(place, subject);
  told.problem = placeIndex(told.place) < 0 ? `state, place: this page has no ${told.place}`
    : symbol !== undefined && !tensorToShow(symbol) ? `state, symbol: there is no tensor ${symbol} at ${told.place}` : null;
}

const sentenceKey = () => JSON.stringify([state.item, tokensOf(state.item)]);

/** [symbol, matrix] of what the stop's place shows for a symbol; null if there is no such tensor. */
function tensorToShow(symbol) {
  const place = page.places[placeIndex(told.place)], result = told.before.resultAt(told.place);
  const view = {...currentView(), place, result, attention: page.attentions[place.attention] ?? null};
  if (!Object.hasOwn(tensorsOf(view), symbol)) return null;
  const shown = shownSymbol(view, symbol);
  const matrix = tensorAt(result, told.place === told.subject.place ? told.subject.head : 0, shown);
  return matrix && [shown, matrix];
}

/** The stop's state in the page's own terms. */
function stateOf({state: {symbol, cell, place, ...rest} = {}}) {
  const {subject, before} = told;
  if (told.problem) return {};
  const changes = {...rest, place: told.place, head: subject.head, row: subject.row};
  if (symbol === undefined) return changes;
  const [shown, matrix] = tensorToShow(symbol);
  changes.symbol = shown;
  if (cell === undefined) return changes;
  const row = Math.min(indexIn(cell[0], before, subject, {matrix}), matrix.rows - 1);
  return {...changes, cell: {row, col: indexIn(cell[1], before, subject, {matrix, row, columns: before.resultAt(told.place).columns})}};
}

function leaveStory() {
  takeStepBack();
  Object.assign(told, {story: null, subject: null});
  setState({story: null, stop: 0});
}

function showTargets(bring) {
  const {point = []} = storyOf(told.story).stops[told.stop];
  pointAt(point.map(keyOfPoint), currentView(), bring);
}

/** "token:row" and "map:attention" name what depends on the run. */
function keyOfPoint(point) {
  const [kind, name] = point.split(":");
  if (kind === "map" && name) return `map:${pathNamed(name, told.subject)}`;
  return kind.endsWith("token") ? `${kind}:${indexIn(name, told.before, told.subject, {})}` : point;
}

const pathNamed = (name, {place}) => ({attention: place, addition: `${place}_residual`}[name] ?? name);

// ------------------------------------------------------------------ the step

async function takeStep() {
  told.version ??= session.version;
  stepping.rule = STORY_STEP.rule; // the form shows what is done
  stepping.rates[STORY_STEP.rule] = STORY_STEP.rate;
  await settled(() => session.step({...STORY_STEP, item: state.item}, PLAIN));
  setState({});
}

/** Back to the weights with which the stop was entered; nothing happens if they are there, or no longer kept. */
function takeStepBack() {
  if (told.version !== null && session.past.some(({version}) => version === told.version)) {
    while (session.version !== told.version) session.undo();
  }
  told.version = null;
}

// ------------------------------------------------------------------ another target to ask for

/** The target with one token exchanged for what the model holds the second most likely there: where that is likeliest. */
function wrongTarget() {
  const {ids} = session.items[state.item], {columns, shared: {P}} = currentRun(PLAIN).places.get("output");
  const tokenizer = session.tokenizers.target;
  const choices = ids.target.slice(0, -1).flatMap((right, row) => (
    Array.from(P.row(row), (probability, n) => ({row, id: columns?.[n] ?? n, probability})).filter(({id}) => id !== right && id >= SPECIALS.length)));
  choices.sort((a, b) => b.probability - a.probability);
  for (const {row, id} of choices) {
    const changed = ids.target.slice(0, -1).with(row, id), text = tokenizer.decode(changed);
    if (JSON.stringify(tokenizer.encode(text)) === JSON.stringify(changed)) return text;
  }
  return null;
}

/** The story begins anew, with a target that the model does not agree with. */
function askFor(target) {
  const {story, stop} = told;
  setState({target});
  enterStop(story, stop);
}

// ------------------------------------------------------------------ what the reader does meanwhile

/** Follows a story that the address names, and sentences that the reader types; a fresh page opens one. */
function followStory(view) {
  told.now = sceneWith(optionsOf(state));
  if (!told.begun) {
    told.begun = true;
    const [first] = tellableStories();
    if (asked === "" && !page.opens && first) queueMicrotask(() => enterStop(first.id, 0));
  }
  const {story, stop} = state;
  if (story === null || told.subject !== null && told.story === story && told.stop === stop && told.sentence === sentenceKey()) return;
  if (!tellableStories().some(({id}) => id === story) || stop >= storyOf(story).stops.length) {
    queueMicrotask(leaveStory); // an address that this page cannot follow
  } else if (told.story === story && told.stop === stop) {
    prepare(story, stop); // another sentence: the caption follows, the page stays where the reader is
  } else if (new URLSearchParams(asked.slice(1)).has("place")) { // all is as the address says, and not as the stop does
    prepare(story, stop);
    queueMicrotask(() => {
      if (storyOf(story).stops[stop].do === "step") takeStep();
      showTargets(true);
    });
  } else queueMicrotask(() => enterStop(story, stop));
}
