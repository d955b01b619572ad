"use strict";
// The buttons of the steps, below the loss and in the panel.
//
// How to use:
//   renderStepForm(container, view)   the form below the loss: a curve, buttons, and how the latest steps went
//   stepButtons(prefix) -> elements   with data-key "<prefix>:once", "…:twenty", "…:undo", "…:reset"

const MANY_STEPS = 20;

function renderStepForm(container, view) {
  if (container.children.length === 0) { // what is said stays where it is: else a screen reader says nothing
    container.append(build("div", {class: "step-form"}), build("p", {class: "step-said", role: "status"}));
  }
  const [form, said] = container.children;
  const {history} = session;
  form.replaceChildren(
    build("span", {class: "step-name"}, "Subtract η · gradient"),
    ...stepButtons("step"),
    build("button", {type: "button", class: "small step-rule", "data-key": "step:choose", onclick: openStepPanel,
      "aria-label": "Choose the rule and its η"}, ruleText()),
    ...(history.length > 1 ? [stepCurve({title: "Loss", lines: lossLines(), top: topOfLosses(), width: 96, height: 26, small: true})] : []));
  if (!isStepping()) setTextOf(said, stepWords(view).join(" "));
  else if (stepping.turn.count > 1) setTextOf(said, `Taking ${stepping.turn.count} steps.`);
}

const ruleText = () => `${STEP_RULES[stepping.rule]}, η = ${rateText(chosenRate())}`;
const STEP_RULES = {sgd: "SGD", adam: "Adam"};

function setTextOf(element, text) {
  if (element.textContent !== text) element.textContent = text; // the same again would be said again
}

function stepButtons(prefix) {
  const {version, past} = session;
  const button = (name, text, onclick, possible = true, label = null) => build("button", {type: "button", class: "small",
    "data-key": `${prefix}:${name}`, "aria-label": label, "aria-disabled": possible ? null : "true",
    onclick: () => possible && onclick()}, text);
  return [
    button("once", "One step", () => takeSteps(1)),
    isStepping() ? button("twenty", "Stop", stopSteps) : button("twenty", "Twenty steps", () => takeSteps(MANY_STEPS)),
    button("undo", "Undo", undoStep, past.length > 0, "Undo the latest step"),
    button("reset", "Trained model", backToTrained, version !== 0, "Back to the weights of the trained model"),
  ];
}

function openStepPanel() {
  setState({panel: "steps"});
  const tab = document.getElementById("tab-steps");
  tab.focus({preventScroll: true});
  tab.scrollIntoView({block: "start", behavior: scrolling()});
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
