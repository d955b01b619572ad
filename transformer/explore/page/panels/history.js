"use strict";
// The view of the history: how A and dS of this head came to be, over the checkpoints of the run.

let historyPlace = null; // which checkpoint is shown; null: the last

/** [{step, A, dS}] of the selected head and item, oldest first. */
const historyOf = ({attention, state}) => attention.history.map(({step, weights, gradScores}) =>
  ({step, A: weights.matrix(state.item, state.head), dS: gradScores.matrix(state.item, state.head)}));

function renderHistory(container, view) {
  const checkpoints = historyOf(view);
  const {source, target} = openingTexts(view.state.item), {source: read, target: asked} = session.items[view.state.item];
  if (checkpoints.length === 0 || read !== source || asked !== target) {
    container.append(build("p", {}, checkpoints.length === 0 ? "This page has no history: it was not made from a run with several checkpoints."
      : `The checkpoints of the training read “${source}” → “${target}”: of another text there is no history.`));
    return;
  }
  const scale = Math.max(...checkpoints.map(({dS}) => extent(dS))); // one for all: what pales has been learnt
  const last = checkpoints.length - 1, sizes = checkpoints.map(({dS}) => normOf(dS));
  const output = build("output", {for: "history-place"}), pair = build("div", {class: "multiples"});
  const slider = build("input", {type: "range", id: "history-place", min: 0, max: last, step: 1, "data-key": "history:slider", oninput: () => show(Number(slider.value))});

  /** Show one checkpoint. The slider itself stays: one that was replaced could not be dragged on. */
  function show(place) {
    historyPlace = place;
    const {step} = checkpoints[place];
    slider.value = String(place);
    slider.setAttribute("aria-valuetext", `step ${step}`);
    output.textContent = `step ${step}`;
    pair.replaceChildren(...pairOf(checkpoints[place], scale, view));
  }

  show(Math.min(historyPlace ?? last, last));
  const changes = changesOf(view);
  container.append(build("div", {class: "panel-controls"}, build("label", {for: "history-place"}, "Checkpoint"), slider, output), pair,
    barTable({label: "Norm of dS at each checkpoint", labels: checkpoints.map(({step}) => `step ${step}`),
      columns: [{symbol: "‖dS‖", name: "", values: sizes, kind: "gradient", low: 0, high: Math.max(...sizes)}]}),
    build("p", {class: "note"}, "At each checkpoint the model read this sentence with the weights that it had then. All dS are on one scale.",
      changes === "" ? "" : ` The history is that of the run; in the rest of the page ${changes}.`));
}

function pairOf({step, A, dS}, scale, view) {
  const {labels, mask} = view, side = Math.max(2, Math.min(20, Math.floor(240 / Math.max(labels.query.length, labels.key.length))));
  const of = (symbol, matrix, kind, caption, more = {}) => grid(matrix, {name: `${symbol} at step ${step}`, kind, caption, mask,
    rowLabels: labels.query, colLabels: labels.key, tokens: tokensOfTensor(view, "A"), size: {width: side, height: side}, ...more});
  return [of("A", A, "weight", "A, the weights"), of("dS", dS, "gradient", "dS, of the scaled scores", {scale})];
}

PANELS.push({id: "history", title: "History", kinds: ["attention"], render: renderHistory});
