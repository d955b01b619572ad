"use strict";
// The sentence bar: what the model reads, what it is asked to write, how probable it finds each token of that, and the
// loss. Both texts can be typed.
//
// How to use:
//   startSentence()                    once: the fields
//   renderSentence(container, view)    the tokens below them; what has not changed stays

let drawnSentence = []; // what the bar that stands there was drawn from
const fieldOf = (side) => document.getElementById(`text-${side}`);

function startSentence() {
  for (const side of ["source", "target"]) {
    const field = fieldOf(side);
    field.addEventListener("input", () => useTyped(side));
  }
  document.getElementById("write").addEventListener("click", letTheModelWrite);
}

/** Of another source the model writes the target, unless the reader has typed one. */
function useTyped(side) {
  const text = fieldOf(side).value;
  if (text === {...state, ...wanted}[side]) return;
  if (side === "target") setState({target: text});
  else setState({source: text, target: state.target === openingTexts(state.item).target ? null : state.target});
}

function letTheModelWrite() {
  state.target = session.items[state.item].target; // so that null is a change, also where other weights wrote this text
  setState({target: null});
}

function renderSentence(container, view) {
  const {run, state: {row, source, target}, place} = view;
  const from = [run, row, place.side, source, target, refusal, session.items[state.item]];
  if (from.every((part, n) => part === drawnSentence[n])) return;
  drawnSentence = from;
  const {source: read, target: asked, written, version} = session.items[state.item];
  showText("source", read);
  showText("target", asked);
  document.getElementById("write").disabled = written && version === session.version;
  document.getElementById("source-tokens").replaceChildren(...sourceTokens(view));
  document.getElementById("target-tokens").replaceChildren(...targetTokens(view));
  document.getElementById("loss").replaceChildren(...lossText(view));
  document.getElementById("about-texts").replaceChildren(...aboutTexts(view, written).map((part) => make("p", ...part)));
}

/** A field that the reader is typing in is left alone, and so is a text that was refused. */
function showText(side, text) {
  const field = fieldOf(side);
  const isRefused = refusal?.side === side;
  field.setAttribute("aria-invalid", String(isRefused));
  if (!isRefused && document.activeElement !== field) field.value = text;
  if (document.activeElement === field && state[side] === null) field.value = text; // the model has written it meanwhile
}

/** A token that chooses its row, wherever the place has one for it. */
function tokenButton(side, place, position, name, details, more = {}) {
  const stack = side === "target" ? "decoder" : "encoder", isChosen = place.side === stack && position === state.row;
  const button = build("button", {type: "button", class: `token ${side}`, "data-key": `${side === "target" ? "token" : "source-token"}:${position}`,
    "aria-current": isChosen && "true", onclick: () => setState(rowInStack(stack, position)), ...more}, make("span", "token-text", name), ...details);
  return standsFor(button, {side, place: position});
}

/** In their sequence equal tokens need no numbers. */
const sourceTokens = ({state: {item}, place}) => tokensOf(item).source.map((name, position) => tokenButton("source", place, position, withSigns(name), []));

/** Each with its probability; where the model would write another, that one with its own. */
function targetTokens({run: {probabilities, predicted}, state: {item}, place}) {
  return tokensOf(item).next.map(withSigns).map((token, position) => {
    const p = probabilities[item][position], own = predicted[position], differs = withSigns(own.token) !== token;
    const details = [make("span", "token-p", percent(p)),
      ...(differs ? [make("span", "token-own", `★ ${withSigns(own.token)} ${percent(own.probability)}`)] : [])];
    const instead = differs ? `; the model itself would write “${own.token}”, with ${percent(own.probability)}` : "";
    return tokenButton("target", place, position, token, details, {class: differs ? "token target differs" : "token target", title: `p = ${p}`,
      "aria-label": `Token ${position}, “${token}”: probability ${percent(p)}${instead}`});
  });
}

/** The row of a token, where the reader is; from the other stack at the output, or at the encoder's embedding. */
function rowInStack(side, row) {
  if (page.places[state.place].side === side) return {row};
  return {place: side === "decoder" ? "output" : "encoder.embedding", row};
}

/** "98%", "0.3%", "2·10⁻⁵%": as many digits as tell it from 0 and from 100. */
function percent(p) {
  if (p > 0.9995) return "100%";
  if (p >= 0.995) return `${(100 * p).toFixed(1)}%`;
  if (p >= 0.0995) return `${Math.round(100 * p)}%`;
  return `${formatNumber(100 * p, p >= 0.001 ? 2 : 1)}%`;
}

function lossText({run: {loss}}) {
  return [make("span", "loss-name", "loss"), make("span", "loss-number", formatNumber(loss, 4))];
}

/** Lines [class, text]: what was refused, what no vocabulary has, and what kind of target this is. */
function aboutTexts({run, state: {item}}, written) {
  const lines = refusal ? [["refused", refusal.message]] : [];
  const unknown = session.unknown(item);
  for (const side of ["source", "target"]) {
    if (unknown[side].length) {
      lines.push(["unknown", `The ${side}’s vocabulary has no ${unknown[side].map((piece) => `“${piece}”`).join(", ")}: read as an unknown token.`]);
    }
  }
  const differs = run.predicted.some(({id}, n) => id !== session.items[item].ids.target[n]);
  if (written && !differs) { // a switch or a step may have changed the model's mind
    lines.push(["hint", "The model wrote this itself, so the loss is small. Change a character of the target."]);
  } else if (differs) {
    lines.push(["hint", "★ what the model would write"]);
  }
  return lines;
}
