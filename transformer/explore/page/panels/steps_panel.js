"use strict";
// The view "Train": the rule and its η, how the latest steps went, and the loss and the probabilities over the steps.

const MANY_STEPS = 20;
const STEP_RULES = {sgd: "SGD", adam: "Adam"};

function renderSteps(container, view) {
  container.append(build("p", {}, ...aboutTheRule()), stepChoices(), stepButtons(),
    build("p", {class: "step-said", role: "status"}, isStepping() ? `Taking ${stepping.turn.count} steps.` : stepWords(view).join(" ")),
    lossFigure(), choiceFigure(view));
}

const aboutTheRule = () => (stepping.rule === "sgd"
  ? ["A gradient says how the loss changes when a weight grows. So go the other way: each weight becomes ",
    build("b", {class: "symbol"}, "w − η · dw"), ", all at once."]
  : ["Adam divides the mean of the gradients so far, ", build("b", {class: "symbol"}, "m"), ", by the root of the mean of their squares, ",
    build("b", {class: "symbol"}, "v"), ": each weight becomes ", build("b", {class: "symbol"}, "w − η · m / √v"),
    ". At first both are zero, so its first step moves every weight by η, whatever its gradient."]);

/** The slider stays while it is dragged: only the texts change. */
function stepChoices() {
  const {rule, rates} = stepping;
  const output = build("output", {for: "step-rate"}, rateText(rates[rule]));
  const slider = build("input", {type: "range", id: "step-rate", min: 0, max: RATES.length - 1, step: 1, "data-key": "steps:rate",
    value: RATES.indexOf(rates[rule]), "aria-valuetext": rateText(rates[rule]), oninput: () => {
      rates[rule] = RATES[Number(slider.value)];
      output.textContent = rateText(rates[rule]);
      slider.setAttribute("aria-valuetext", rateText(rates[rule]));
    }});
  const choose = (chosen) => {
    stepping.rule = chosen;
    setState({});
  };
  return build("div", {class: "panel-controls"}, segments("Rule", "steps-rule", Object.entries(STEP_RULES), rule, choose),
    build("label", {for: "step-rate"}, "η"), slider, output);
}

function stepButtons() {
  const {version, past} = session;
  const button = (name, text, onclick, possible = true, label = null) => build("button", {type: "button", class: "small",
    "data-key": `steps:${name}`, "aria-label": label, "aria-disabled": possible ? null : "true",
    onclick: () => possible && onclick()}, text);
  return build("div", {class: "panel-controls"},
    button("once", "One step", () => takeSteps(1)),
    isStepping() ? button("twenty", "Stop", stopSteps) : button("twenty", "Twenty steps", () => takeSteps(MANY_STEPS)),
    button("undo", "Undo", undoStep, past.length > 0, "Undo the latest step"),
    button("reset", "Trained model", backToTrained, version !== 0, "Back to the weights of the trained model"));
}

/** The losses of the present sentences; with a mistake, those of the right gradient beside them. */
function lossLines() {
  const {history} = session, right = historyBeside();
  const losses = (entries) => entries.map(({loss}) => loss);
  const values = history.length > 0 ? losses(history) : [currentRun().loss];
  if (right === null) return [{name: "loss", kind: "now", values}];
  return [{name: "right gradient", kind: "right", values: losses(right)}, {name: "gradient with the mistake", kind: "wrong", values}];
}

/** Room for the start and a rise; a loss that explodes leaves the picture. */
function topOfLosses() {
  const all = lossLines().flatMap(({values}) => values).filter(Number.isFinite);
  return Math.min(Math.max(...all), 3 * lossLines()[0].values[0]) || 1;
}

function lossFigure() {
  const lines = lossLines();
  return build("figure", {"data-curve": "loss"}, build("h3", {}, "The loss"),
    stepCurve({title: "Loss over the steps", lines, top: topOfLosses()}), curveKey(lines));
}

/** At the target's position of the chosen row: what is asked for, and what the trained model would have written. */
function choiceFigure(view) {
  const {item} = view.state, {row, asked, former} = choiceOf(view);
  const entries = session.history.length > 0 ? session.history.map(({P}) => P[item]) : [view.run.P[item]];
  const line = (name, kind, id) => ({name: `${name} “${tokenOf(id)}”`, kind, values: entries.map((P) => P.at(row, id))});
  const lines = [...(former === asked ? [] : [line("the trained model’s choice", "before", former)]), line("asked for:", "now", asked)];
  const {target, next} = tokensOf(item);
  return build("figure", {"data-curve": "choice"}, build("h3", {}, `Probabilities in row ${rowNames(target, next)[row]}`),
    stepCurve({title: "Probabilities over the steps", lines, top: 1}), curveKey(lines));
}

function choiceOf(view) {
  const row = targetRow(view);
  return {row, asked: session.items[view.state.item].ids.target[row], former: trainedRun().predicted[row].id};
}

const outputNow = ({run}) => run.places.get("output").shared;

/** The chosen row of the decoder; before any is chosen, the one that the loss blames most. */
function targetRow(view) {
  const last = session.items[view.state.item].ids.target.length - 1;
  const chosen = view.place.side === "decoder" ? view.state.row : remembered.get("token of the decoder");
  if (chosen !== undefined) return Math.min(chosen, last);
  const losses = Array.from(outputNow(view).L.data);
  return losses.indexOf(Math.max(...losses));
}

PANELS.push({id: "steps", title: "Train", render: renderSteps});
