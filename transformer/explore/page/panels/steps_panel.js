"use strict";
// The panel "Take a step": the rule and its η, the loss and the probabilities over the steps, and what the steps have made
// of the trained model's choice and of a row of an attention.

function renderSteps(container, view) {
  const words = isStepping() ? [] : stepWords(view);
  const controls = build("div", {class: "reading"}, build("p", {}, ...aboutTheRule()), stepChoices(),
    build("div", {class: "panel-controls"}, ...stepButtons("steps")), build("p", {class: "step-words"}, words.join(" ")));
  container.append(
    build("div", {class: "step-top"}, controls, build("div", {class: "step-curves"}, lossFigure(), choiceFigure(view))),
    build("h3", {}, "The trained model and now"),
    build("div", {class: "side-by-side"}, ...probabilitiesNow(view), ...attentionNow(view)));
}

const aboutTheRule = () => (stepping.rule === "sgd"
  ? ["A gradient says how the loss changes when a weight grows. So go the other way: each weight becomes ",
    build("b", {class: "symbol"}, "w − η · dw"), ", all at once. η, the learning rate, says how far."]
  : ["Adam divides the mean of the gradients so far, ", build("b", {class: "symbol"}, "m"), ", by the root of the mean of their squares, ",
    build("b", {class: "symbol"}, "v"), ": each weight becomes ", build("b", {class: "symbol"}, "w − η · m / √v"),
    ". At first both are zero, so its first step moves every weight by η, whatever the size of its gradient."]);

/** The slider stays while it is dragged: only the texts change. */
function stepChoices() {
  const {rule, rates} = stepping;
  const output = build("output", {for: "step-rate"}, rateText(rates[rule]));
  const slider = build("input", {type: "range", id: "step-rate", min: 0, max: RATES.length - 1, step: 1, "data-key": "steps:rate",
    value: RATES.indexOf(rates[rule]), "aria-valuetext": rateText(rates[rule])});
  slider.addEventListener("input", () => {
    rates[rule] = RATES[Number(slider.value)];
    output.textContent = rateText(rates[rule]);
    slider.setAttribute("aria-valuetext", rateText(rates[rule]));
    document.querySelector("[data-key='step:choose']").textContent = ruleText();
  });
  const choose = (chosen) => {
    stepping.rule = chosen;
    setState({});
  };
  return build("div", {class: "panel-controls"},
    segments("Rule", "steps-rule", [["sgd", "SGD"], ["adam", "Adam from zero moments"]], rule, choose),
    build("div", {class: "step-rate"}, build("label", {for: "step-rate"}, "η"), slider, output));
}

function lossFigure() {
  const lines = lossLines();
  return build("figure", {"data-curve": "loss"}, build("h3", {}, "The loss"),
    stepCurve({title: "Loss over the steps", lines, top: topOfLosses()}), curveKey(lines));
}

/** At the target's position of the chosen row: what is asked for, and what the trained model would have written. */
function choiceFigure(view) {
  const {item} = view.state, {row, asked, former} = choiceOf(view);
  const entries = session.history.length > 0 ? session.history.map(({P}) => P[item]) : [outputNow(view).P];
  const line = (name, kind, id) => ({name: `${name} “${view.labels.vocabulary[id]}”`, kind, values: entries.map((P) => P.at(row, id))});
  const lines = [...(former === asked ? [] : [line("the trained model’s choice", "before", former)]), line("asked for:", "now", asked)];
  return build("figure", {"data-curve": "choice"}, build("h3", {}, `Probabilities in row ${targetNames(view)[row]}`),
    stepCurve({title: "Probabilities over the steps", lines, top: 1}), curveKey(lines));
}

function choiceOf(view) {
  const row = targetRow(view);
  return {row, asked: session.items[view.state.item].ids.target[row], former: trainedRun().predicted[row].id};
}

const outputNow = ({run}) => run.places.get("output").shared;
const targetNames = ({state: {item}}) => {
  const {target, next} = tokensOf(item);
  return rowNames(target, next);
};

/** The chosen row of the decoder; before any is chosen, the one that the loss blames most. */
function targetRow(view) {
  const last = session.items[view.state.item].ids.target.length - 1;
  const chosen = view.place.side === "decoder" ? view.state.row : remembered.get("token of the decoder");
  if (chosen !== undefined) return Math.min(chosen, last);
  const losses = Array.from(outputNow(view).L.data);
  return losses.indexOf(Math.max(...losses));
}

const MOST_CHOICES = 8; // tokens that are shown of a vocabulary

/** The most probable tokens then and now, with bars for now and a line for then. */
function probabilitiesNow(view) {
  const {row, asked} = choiceOf(view);
  const [before, now] = [trainedRun(), view.run].map((run) => run.places.get("output").shared.P.row(row));
  const larger = (id) => (id === asked ? 2 : Math.max(before[id], now[id]));
  const ids = [...now.keys()].sort((a, b) => larger(b) - larger(a)).slice(0, MOST_CHOICES);
  const bars = thenAndNow({id: "step-p", symbol: "p", name: "probability", values: ids.map((id) => now[id]), marks: ids.map((id) => before[id])}, 1);
  return [build("div", {}, build("p", {class: "note"}, `Row ${targetNames(view)[row]}: the first bar is the token that is asked for.`),
    barTable({label: "Probabilities then and now", labels: ids.map((id) => view.labels.vocabulary[id]), rows: [bars]}))];
}

/** The chosen row of the attention on the stage; elsewhere, that of the last cross-attention. */
function attentionNow(view) {
  const place = view.attention ? view.place : page.places.findLast(({path}) => path.endsWith("cross_attention"));
  if (!place) return [];
  const attention = page.attentions[place.attention], {head, item} = view.state;
  const [before, now] = [trainedRun(), view.run].map((run) => run.places.get(place.path).heads[head]);
  const labels = labelsOfItem({place, attention, head: now}, item);
  const row = view.attention ? view.state.row : targetRow(view);
  const [then, weights] = [before, now].map(({A}) => Array.from(A.row(row)));
  const bars = thenAndNow({id: "step-A", symbol: "A", name: "attention weight", values: weights, marks: then}, Math.max(...then, ...weights));
  return [build("div", {}, build("p", {class: "note"}, `${place.title}, head ${head}, row ${labels.query[row]}.`),
    barTable({label: "Attention weights then and now", labels: labels.key, side: attention.keys, rows: [bars],
      masked: now.mask ? Array.from(now.mask.row(row), (allowed) => allowed === 0) : null}))];
}

const thenAndNow = (row, high) => ({...row, name: `${row.name} now; the line: of the trained model`, kind: "weight", low: 0, high});

PANELS.push({id: "steps", title: "Take a step", render: renderSteps});
