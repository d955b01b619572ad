"use strict";
// How a cell comes about, in motion: term by term the entries of the operands light up, their product flies into the sum,
// and the total lands in the cell. Everything stands on the page from the beginning; the motion only reveals it.
//
// How to use:
//   playSum(view)    about the chosen cell; any key, click or turn of the wheel ends it, and prefers-reduced-motion forbids it
//   playButton(view) -> a button that does so
//   motionAllowed(), scrolling()    whether anything may move on this page, and how it scrolls then

const ALL_TERMS = 850, FLIGHT = 280, LANDING = 300; // milliseconds: in all less than 1.5 s
const LONGEST_TERM = 170;
const MOST_FLIGHTS = 40; // of a longer sum, the terms come in as many groups

let playing = null; // {animations, extras}: the elements that are there for the motion alone

const motionAllowed = () => !matchMedia("(prefers-reduced-motion: reduce)").matches;
const scrolling = () => (motionAllowed() ? "smooth" : "instant");

function playButton(view) {
  const button = make("button", "small play", "▶");
  Object.assign(button, {type: "button", title: "Play how this number comes about", ariaLabel: "Play how this number comes about"});
  button.dataset.key = "play";
  button.addEventListener("click", () => playSum(view));
  return button;
}

function playSum(view) {
  endMotion();
  const stage = document.getElementById("stage"), line = stage.querySelector(".worked > .terms");
  if (!motionAllowed() || !line) return;
  const {symbol, cell} = view.state;
  const {terms} = workedCell(view, symbol, cell.row, cell.col);
  const chips = [...line.querySelectorAll(".term")], total = line.querySelector(".total");
  const groups = Math.min(chips.length, MOST_FLIGHTS);
  const slot = Math.min(LONGEST_TERM, ALL_TERMS / Math.max(1, groups));
  playing = {animations: [], extras: []};

  const shown = chips.map((chip, n) => ({chip, delay: slot * Math.floor(n * groups / chips.length),
    entries: entriesOf(view, stage, terms[n])}));
  for (const {chip, delay, entries} of shown) { // measured before anything is added to the page
    const from = entries[0] ? flight(chip, centreOf(entries[0])) : "scale(0.6)";
    reveal(chip, {transform: from}, delay, FLIGHT);
    if (chip.previousElementSibling?.matches(".operator")) reveal(chip.previousElementSibling, {}, delay, FLIGHT);
  }
  const landing = slot * groups + FLIGHT / 2;
  reveal(total, {}, landing, LANDING / 2);
  for (const {delay, entries} of shown) for (const [host, row, col] of entries) pulse(host, row, col, delay, Math.max(260, 2 * slot));
  const result = hostOf(stage, symbol);
  if (result) {
    land(total, centreOf([result, cell.row, cell.col]), landing);
    pulse(result, cell.row, cell.col, landing + LANDING / 2, LANDING);
  }
  Promise.allSettled(playing.animations.map(({finished}) => finished)).then(clearMotion.bind(null, playing));
  for (const event of ENDING) document.addEventListener(event, endMotion, {capture: true, passive: true, once: true});
}

const ENDING = ["keydown", "pointerdown", "wheel"];

function endMotion() {
  if (playing === null) return;
  playing.animations.forEach((animation) => animation.cancel());
  clearMotion(playing);
}

function clearMotion(motion) {
  motion.extras.forEach((element) => element.remove());
  if (playing !== motion) return; // another has begun since
  playing = null;
  for (const event of ENDING) document.removeEventListener(event, endMotion, {capture: true});
}

function animate(element, keyframes, delay, duration) {
  playing.animations.push(element.animate(keyframes, {delay, duration, fill: "backwards", easing: "ease-out"}));
}

/** From nothing to what is there. */
const reveal = (element, from, delay, duration) => animate(element, [{opacity: 0, ...from}, {}], delay, duration);

/** Light up a cell of a grid for a moment. */
function pulse(host, row, col, delay, duration) {
  const mark = boxed("pulse", cellOn(host, row, col));
  host.append(mark);
  playing.extras.push(mark);
  animate(mark, [{opacity: 0}, {opacity: 1, offset: 0.3}, {opacity: 0}], delay, duration);
}

/** A copy of the total flies to the cell. */
function land(total, to, delay) {
  const copy = make("span", "flying", total.textContent.replace("= ", ""));
  copy.ariaHidden = "true";
  total.append(copy);
  playing.extras.push(copy);
  animate(copy, [{opacity: 0}, {opacity: 1, offset: 0.2}, {opacity: 0, transform: flight(total, to)}], delay, LANDING);
}

/** The move that takes an element there. */
function flight(element, [x, y]) {
  const {left, top, width, height} = element.getBoundingClientRect();
  return `translate(${x - left - width / 2}px, ${y - top - height / 2}px) scale(0.4)`;
}

/** The grids of the operands that hold the entries of a term, with their places: [grid, row, col]. */
function entriesOf(view, stage, term) {
  const simple = (factor) => (factor.of ? factor.of.flatMap(simple) : [factor]);
  return term.factors.flatMap(simple).filter(({symbol, item}) => symbol && item === undefined)
    .map(({symbol, i, j, head}) => [hostOf(stage, shownSymbol(view, symbol), head), i, j])
    .filter(([host]) => host);
}

/** What holds the cells of the grid of a tensor on the stage. */
function hostOf(stage, symbol, head) {
  const names = [`${symbol} (head ${head})`, `${symbol} (all heads)`, symbol];
  const figures = [...stage.querySelectorAll(".equation .grid")];
  const figure = names.map((name) => figures.find(({dataset}) => dataset.name === name)).find(Boolean);
  return figure?.querySelector(".grid-scroll");
}

function centreOf([host, row, col]) {
  const {left, top, width, height} = picturesOfTokens.get(host).cellAt(row, col);
  return [left + width / 2, top + height / 2];
}
