"use strict";
// What a story is about: one row of one attention, found in the run, so that the story holds for any sentence and any model.
//
// How to use:
//   sceneWith(options) -> {run, resultAt(path)}     a run to read numbers from; PLAIN are the options without any switch
//   subjectOf(about) -> {about, place, head, row, key, other}, or null where the page has none
//       place, head, row   the attention's path, its head, its query
//       key                the key with the largest |dS| of the row: the one that the error wants looked at more, or less
//       other              the key with the largest |dS| of the other sign
//   wouldWriteAnother(row) -> whether the model, with the weights of now, writes another token there than the one asked for
//   about is one of
//       "wrong token"        the token that the model would have written otherwise; if there are several, or none, the one
//                            whose loss is largest
//       "largest gradient"   the row with the most dS
//       "fading row"         the row whose dS loses most if scores are not divided by √d_k
// Of the heads, and rows, with much dS the first two take the one in which D matters most: there one sees what it is for.

const PLAIN = {scaling: true, masking: true, edit: null, broken: null};
const MUCH = 0.5; // of the largest norm of a row of dS

function sceneWith(options) {
  const run = currentRun(options);
  return {run, resultAt: (path) => run.places.get(path)};
}

function subjectOf(about) {
  const scene = sceneWith(PLAIN);
  const candidates = candidateRows(scene);
  if (candidates.length === 0) return null;
  const asked = about === "wrong token" ? rowAskedFor(scene) : null;
  const found = about === "fading row" ? mostFading(candidates)
    : mostTelling(scene, asked !== null ? candidates.filter(({row}) => row === asked) : candidates);
  return found && {about, ...found, ...keysOf(scene, found)};
}

const isWrong = ({predicted, places}, row) => predicted[row].id !== places.get("output").shared.ids[row];
const wouldWriteAnother = (row) => isWrong(sceneWith(PLAIN).run, row);

const largestBy = (all, measure) => all.reduce((best, one) => (best === null || measure(one) > measure(best) ? one : best), null);

/** Every row of the cross-attentions, with the norm of its dS. */
function candidateRows(scene) {
  const paths = scene.run.order.filter((path) => path.endsWith("cross_attention"));
  return paths.flatMap((path) => scene.resultAt(path).heads.flatMap(({dS}, head) => norms(dS).map((size, row) => ({place: path, head, row, size}))));
}

/** The row of the token that the model would have written otherwise; if there are several, or none, the one of most loss. */
function rowAskedFor({run}) {
  const rows = Array.from(run.places.get("output").shared.L.data, (loss, row) => ({row, loss: loss + (isWrong(run, row) ? 1e9 : 0)}));
  return largestBy(rows, ({loss}) => loss).row;
}

/** Of the rows with much dS the one that would be most wrong without D. */
function mostTelling(scene, candidates) {
  const most = Math.max(...candidates.map(({size}) => size));
  const shareOfD = ({place, head, row}) => {
    const {A, D} = scene.resultAt(place).heads[head];
    return Math.abs(D.at(row, 0)) * lengthOf(A.row(row));
  };
  return largestBy(candidates.filter(({size}) => size >= MUCH * most), shareOfD);
}

function mostFading(candidates) {
  const unscaled = sceneWith({...PLAIN, scaling: false});
  return largestBy(candidates, ({place, head, row, size}) => size - lengthOf(unscaled.resultAt(place).heads[head].dS.row(row)));
}

function keysOf(scene, {place, head, row}) {
  const gradient = scene.resultAt(place).heads[head].dS.row(row);
  const keys = [...gradient.keys()], size = (key) => Math.abs(gradient[key]);
  const key = largestBy(keys, size);
  return {key, other: largestBy(keys.filter((other) => gradient[other] * gradient[key] < 0), size) ?? (key === 0 ? 1 : 0)};
}
