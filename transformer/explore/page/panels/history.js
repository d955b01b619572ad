"use strict";
// The history panel: how A and dS of this head came to be, over the checkpoints of the run.

let historyPlace = null; // which checkpoint is shown large; null: the last

/** [{step, A, dS}] of the selected head and item, oldest first. */
const historyOf = ({attention, state}) => attention.history.map(({step, weights, gradScores}) =>
  ({step, A: weights.matrix(state.item, state.head), dS: gradScores.matrix(state.item, state.head)}));

function renderHistory(container, view) {
  const checkpoints = historyOf(view);
  if (checkpoints.length === 0) {
    container.append(build("p", {}, "This page has no history: it was not made from a run with several checkpoints."));
    return;
  }
  if (hasOtherTexts(view)) {
    container.append(...historyOfOtherTexts(view));
    return;
  }
  const scale = Math.max(...checkpoints.map(({dS}) => extent(dS))); // one for all: what pales has been learnt
  const {controls, slider, output} = historySlider(checkpoints);
  const large = build("div", {class: "multiples"});
  const strip = historyStrip(checkpoints, scale, view, show);
  slider.addEventListener("input", () => show(Number(slider.value)));

  /** Show one checkpoint large. The slider itself stays: one that was replaced could not be dragged on. */
  function show(place) {
    historyPlace = place;
    const {step} = checkpoints[place];
    slider.value = String(place);
    slider.setAttribute("aria-valuetext", `step ${step}`);
    output.textContent = `step ${step}`;
    large.replaceChildren(...largePair(checkpoints[place], scale, view));
    strip.querySelectorAll(".multiple").forEach((figure, n) => {
      figure.classList.toggle("chosen", n === place);
      figure.querySelector("button").setAttribute("aria-pressed", String(n === place));
    });
  }

  const last = checkpoints.length - 1;
  show(Math.min(historyPlace ?? last, last));
  const changes = changesOf(view);
  container.append(controls, large, build("h3", {}, "All checkpoints"), scroller("All checkpoints", strip), normsOverSteps(checkpoints),
    build("p", {class: "note"}, "At each checkpoint the model read this sentence with the weights that it had then. All dS ",
      "are on one scale.", changes === "" ? "" : ` The history is that of the run; in the rest of the page ${changes}.`));
}

/** The checkpoints have read the sentence of the page, not one that a reader typed. */
function hasOtherTexts({session, state: {item}}) {
  const {source, target} = openingTexts(item);
  return session.items[item].source !== source || session.items[item].target !== target;
}

function historyOfOtherTexts({state: {item}}) {
  const {source, target} = openingTexts(item);
  const back = build("button", {type: "button", class: "small", "data-key": "history:back", onclick: () => setState({source, target})},
    "Back to that sentence");
  return [build("p", {}, `The checkpoints of the training read “${source}” → “${target}”: of another text there is no history.`), back];
}

function historySlider(checkpoints) {
  const slider = build("input", {type: "range", id: "history-place", min: 0, max: checkpoints.length - 1, step: 1,
    "data-key": "history:slider"});
  const output = build("output", {for: "history-place"});
  const label = build("label", {for: "history-place"}, "Checkpoint");
  return {slider, output, controls: build("div", {class: "panel-controls"}, label, slider, output)};
}

function largePair({step, A, dS}, scale, view) {
  const {labels, mask} = view;
  const options = {rowLabels: labels.query, colLabels: labels.key, mask, tokens: tokensOfTensor(view, "A")};
  const pair = {
    A: grid(A, {...options, name: `A at step ${step}`, kind: "weight", caption: "A, the weights"}),
    dS: grid(dS, {...options, name: `dS at step ${step}`, kind: "gradient", scale, caption: "dS, of the scaled scores"}),
  };
  for (const [symbol, figure] of Object.entries(pair)) figure.dataset.history = symbol;
  return Object.values(pair);
}

const normsOverSteps = (checkpoints) => barTable({
  label: "Norm of dS at each checkpoint", labels: checkpoints.map(({step}) => String(step)),
  rows: normRows([{symbol: "‖dS‖", name: "by step", values: checkpoints.map(({dS}) => normOf(dS))}]),
});

function historyStrip(checkpoints, scale, view, choose) {
  const {labels, mask} = view;
  const cell = Math.max(2, Math.min(12, Math.floor(120 / Math.max(labels.query.length, labels.key.length))));
  const options = {cell, mask, rowLabels: labels.query, colLabels: labels.key, tokens: tokensOfTensor(view, "A")};
  const multiples = checkpoints.map(({step, A, dS}, n) => build("figure", {class: "multiple", "data-step": step},
    build("button", {type: "button", "data-key": `history:${n}`, onclick: () => choose(n)}, `step ${step}`),
    smallGrid(A, {...options, name: `A at step ${step}`, kind: "weight"}),
    smallGrid(dS, {...options, name: `dS at step ${step}`, kind: "gradient", scale})));
  return build("div", {class: "filmstrip"}, ...multiples);
}

PANELS.push({id: "history", title: "History", kinds: ["attention"], render: renderHistory});
