"use strict";
// The texts of a story: their placeholders become words and numbers of the run.
//
// How to use:
//   toldText(text, told) -> nodes        told: {now, before, subject, place}: two scenes, the subject (subject.js), a path
//
//   {asked}            a word, or a number (words.js)
//   {dS[row, key]}     the entry of a tensor at the stop's place, in the subject's head; {D[row]}: of one column
//   {sum dS[row]}      the sum of the row; size: its norm; largest: its largest entry, by size
//   {before loss}      the same without switches, and before the step
//   {falls loss}       "falls", "rises" or "stays", from before to now

/** A placeholder that the run has nothing for; the message says what is missing. */
class UntoldError extends Error {}

const PLACEHOLDER = /^(?:(before|falls) )?(?:(sum|size|largest) )?([A-Za-z_]+)(?:\[(\w+)(?:, ?(\w+))?\])?$/;

const SUMMARIES = {
  sum: (row) => row.reduce((sum, x) => sum + x, 0),
  size: lengthOf,
  largest: (row) => row.reduce((most, x) => (Number.isFinite(x) && Math.abs(x) > Math.abs(most) ? x : most), 0),
};

function toldText(text, told) {
  const parts = text.split(/\{([^{}]*)\}/);
  return parts.flatMap((part, n) => (n % 2 ? [toldNode(part, /[−·] $/.test(parts[n - 1]), told)] : withSubscripts(part)));
}

/** A negative number after an operator stands in parentheses. */
function toldNode(inner, afterOperator, told) {
  const value = valueOf(inner, told);
  const shown = typeof value === "number" ? shortNumber(value) : value;
  const isSentence = Object.hasOwn(STORY_SENTENCES, inner);
  return build(isSentence ? "span" : "b", {class: isSentence ? null : "told", "data-placeholder": inner, "data-value": value},
    afterOperator && value < 0 ? `(${shown})` : shown);
}

/** Counts in full, anything else with three digits; nearly 1 is not 1. */
function shortNumber(value) {
  if (Math.abs(value - Math.round(value)) < 1e-12 && Math.round(value) !== 0) return Math.round(value).toLocaleString("en");
  return value > 0.9995 && value < 1 ? "more than 0.999" : formatNumber(value, 3);
}

function valueOf(inner, told) {
  const [, prefix, summary, name, row, col] = inner.match(PLACEHOLDER);
  if (prefix === "falls") return fallsOrRises(inner.replace("falls ", ""), told);
  const scene = prefix === "before" ? told.before : told.now;
  if (row === undefined) return (STORY_WORDS[name] ?? STORY_SENTENCES[name])(scene, told.subject, told.place);
  const {place, subject} = told;
  const result = scene.resultAt(place);
  const matrix = tensorAt(result.full ?? result, place === subject.place ? subject.head : 0, name);
  if (!matrix) throw new UntoldError(`there is no tensor ${name} at ${place}`);
  const i = indexIn(row, scene, subject, {matrix});
  if (!(i < matrix.rows)) throw new UntoldError(`${name} has no row ${i} at ${place}`);
  if (summary) return SUMMARIES[summary](matrix.row(i));
  const j = col === undefined ? 0 : indexIn(col, scene, subject, {matrix, row: i});
  if (!(j < matrix.cols)) throw new UntoldError(`${name} has no column ${j} at ${place}`);
  return matrix.at(i, j);
}

function fallsOrRises(inner, told) {
  const [before, now] = [`before ${inner}`, inner].map((one) => Math.abs(valueOf(one, told)));
  return now < before ? "falls" : now > before ? "rises" : "stays";
}
