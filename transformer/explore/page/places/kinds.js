"use strict";
// The kinds of places in a model: attention, norm, feed_forward, residual, embedding, output. A kind says what there is
// to see in such a place; the strip, the stage and the panels show whatever it says.
//
// How to use:
//   defineKind("residual", {…})      registers a kind; its fields, of which only the first five are needed:
//       tensors        {symbol: facts}, made by withGradients()
//       forwardOrder, backwardOrder  the symbols of the tiles, in the order in which the passes make them
//       columns        the strip from left to right: the symbols of each group; what a place has not is left out. A tensor stands
//                      above its gradient; what the backward alone makes stands below a gap
//       below          {symbol: what stands below it in place of its gradient}
//       equations      {symbol: text, or a function of the view}: what stands on the stage (equations.js), where the rule
//                      has no equation of its own
//       words          {symbol: text, or a function of the view}: why it is so, in a sentence or two (words.js)
//       shortNames     {symbol: a word or two for its tile}
//       weights        the symbols whose cells lie between 0 and 1, and are painted so
//       masked         the symbols whose masked cells are hatched
//       tiles          {symbol without a tile: the tile that it belongs to}
//       instead        {symbol: what is shown where a place of this kind has no such tensor}
//       editable       {symbol: the name of the edit}: the tiles whose cells a reader can change
//       identities     [(result, head) -> a fact that must hold, or null]: see faults/identities.js
//       merged         (view) -> {symbol: the one that it equals in this place, and is shown as}
//       replaced       (result) -> {symbol: {formula, rule}}, what a mistake made on purpose puts in place of a rule
//       brokenEquations  {key of the mistake: equations}, likewise
//       nameOf         (symbol, problem) -> the symbol under which a place of this kind knows it
//       spell          (text, result) -> a formula in the terms of this place
//       asShown        (view, text) -> a text without the tensors that are merged with others
//   kindOfPlace(view), kindOfResult(result) -> the kind of the place on the page
//   tensorsOf(view) -> its table of tensors
//   factsOf(symbol, result) -> {symbol, label, name, rowsAre, colsAre, forward, backward, rule}
//       label    as on paper: "dS̄" for dSm
//       rowsAre, colsAre  the axes: "query" or "key" (tokens), "vocabulary" (tokens too), "feature" (of a head), "model"
//                (of all heads), "hidden" (of the feed-forward) or "one"
//       forward  of a tensor, the formula that makes it; of a gradient, that of the step which it comes back through
//       backward the formula of the gradient: of the tensor, or of the one itself
//                (each a text, or a function of the problem that gives it: spelled() in cells.js)
//       rule     how each cell comes about (rules.js)

const PLACE_KINDS = {};

const FIELDS_LEFT_OUT = {
  shortNames: {}, weights: [], masked: [], tiles: {}, instead: {}, editable: {}, below: {}, identities: [],
  merged: () => ({}), replaced: () => ({}), brokenEquations: {},
  nameOf: (symbol) => symbol, spell: (text) => text, asShown: (_, text) => text,
};

function defineKind(name, kind) {
  PLACE_KINDS[name] = {...FIELDS_LEFT_OUT, ...kind, name};
}

/**
 * A table of tensors and their gradients. Of a tensor {label, name, axes, forward, rule, next, backward, gradientRule},
 * `forward` and `rule` make it, and its gradient comes back through the formula `next`; a tensor that has no gradient of
 * its own leaves those out. By default it is its own label, that is its formula, and its axes are query and model.
 */
function withGradients(tensors) {
  const table = {};
  for (const [symbol, facts] of Object.entries(tensors)) {
    const {label = symbol, name, axes: [rowsAre, colsAre] = ["query", "model"], forward = label, rule, next, backward, gradientRule} = facts;
    const shared = {rowsAre, colsAre, backward};
    table[symbol] = {symbol, label, name, ...shared, forward, rule};
    if (!gradientRule) continue;
    const gradient = {symbol: `d${symbol}`, label: `d${label}`, name: `gradient of the ${name}`};
    table[`d${symbol}`] = {...gradient, ...shared, forward: next, rule: gradientRule};
  }
  return table;
}

const kindOfResult = ({kind}) => PLACE_KINDS[kind];
const kindOfPlace = ({result}) => kindOfResult(result);
const tensorsOf = (view) => kindOfPlace(view).tensors;
const factsOf = (symbol, result) => kindOfResult(result).tensors[symbol];

/** Whether any kind of place has a tensor of this symbol. */
const isSymbol = (symbol) => Object.values(PLACE_KINDS).some(({tensors}) => Object.hasOwn(tensors, symbol));

// What the backward computes on its way, of which no tensor of the forward is the partner.
const MADE_BACKWARD = new Set(["D", "m1", "m2"]);
const isGradient = (symbol) => symbol.startsWith("d") || MADE_BACKWARD.has(symbol);
const gradientOf = (symbol) => `d${symbol}`;
const tensorOf = (symbol) => (isGradient(symbol) ? symbol.slice(1) : symbol);

// How the facts of several kinds say it.
const A_PARAMETER = "A parameter: the model learnt it.";
const ARRIVES = "What arrives from the rest of the model: the engine's gradient of the loss.";
const FOR_EVERY_TOKEN = "for every token: what went in times what came back, summed over the tokens and the sentences.";
const ADDED_TO_ALL = (what) => `It was added to ${what}, so it collects the gradient of each.`;
const FROM_BEFORE = "As the places before left it.";
const AFTERWARDS = "what comes after it";
/** A formula without the biases that this place has not: " + b₁" goes where there is no b1. */
const withoutMissingBias = (text, result) => text.replace(/ \+ b([₁₂]?)(?!\w)/g, (bias, digit) => (
  tensorAt(result, 0, `b${{"₁": 1, "₂": 2}[digit] ?? ""}`) ? bias : ""));
