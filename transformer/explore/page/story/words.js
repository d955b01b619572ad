"use strict";
// The placeholders of a story's texts that are words: what each of them stands for. docs/stories.md lists them.
//
// How to use:
//   STORY_WORDS[name](scene, subject, place) -> a text, or a number      place is the path of the stop's place
//   STORY_SENTENCES[name](scene, subject, place) -> a sentence, or ""
//   indexIn(word, scene, subject, row) -> the number that "row", "key", "other", "asked", "written" or "largest" stands for

const outputOf = ({run}) => run.places.get("output");
const tokenOf = (id) => withSigns(session.tokenizers.target.tokens([id])[0]);
const askedId = (scene, {row}) => outputOf(scene).shared.ids[row];
const writtenId = ({run}, {row}) => run.predicted[row].id;
const headOf = (scene, {place, head}) => scene.resultAt(place).heads[head];
const subjectEntry = (scene, subject, symbol, col) => headOf(scene, subject)[symbol].at(subject.row, col);

/** One of two words, by the sign of the entry at the row and the key. */
const bySign = (symbol, positive, negative) => (scene, subject) => (
  subjectEntry(scene, subject, symbol, subject.key) < 0 ? negative : positive);
const costsMore = (scene, subject) => subjectEntry(scene, subject, "dA", subject.key) > subjectEntry(scene, subject, "D", 0);

const STORY_WORDS = {
  // the token that is asked for
  read: (scene, {row}) => withSigns(tokensOf(state.item).target[row]),
  so_far: (scene, {row}) => (row === 0 ? "nothing" : `“${session.tokenizers.target.decode(session.read(state.item).slice(1, row + 1))}”`),
  written: (scene, subject) => tokenOf(writtenId(scene, subject)),
  asked: (scene, subject) => tokenOf(askedId(scene, subject)),
  p_written: ({run}, {row}) => run.predicted[row].probability,
  p_asked: ({run}, {row}) => run.probabilities[state.item][row],
  loss: ({run}) => run.loss,
  loss_here: (scene, {row}) => outputOf(scene).shared.L.at(row, 0),
  tokens: (scene) => outputOf(scene).problem.count,
  rate: () => String(STORY_STEP.rate),
  parameters: () => session.size,
  // the attention
  place: (scene, {place}) => nameInSentence(page.places[placeIndex(place)]),
  head: (scene, {head}) => String(head + 1),
  query: (scene, subject) => storyLabels(subject).query[subject.row],
  key: (scene, subject) => storyLabels(subject).key[subject.key],
  other: (scene, subject) => storyLabels(subject).key[subject.other],
  word: (scene, subject) => wordAround(subject.key),
  keys: (scene, subject) => String(headOf(scene, subject).A.row(subject.row).filter((weight) => weight > 0).length),
  d_k: (scene, subject) => String(headOf(scene, subject).Q.cols),
  root: (scene, subject) => Math.sqrt(headOf(scene, subject).Q.cols),
  // what its numbers say
  above: (scene, subject) => (costsMore(scene, subject) ? "above" : "below"),
  cost: (scene, subject) => 0.01 * Math.abs(subjectEntry(scene, subject, "dA", subject.key)),
  raises: bySign("dS", "lowers", "raises"),
  rise: bySign("dA", "rise", "fall"),
  more: bySign("dS", "less", "more"),
  weight: (scene, subject) => subjectEntry(scene, subject, "A", subject.key),
};

// Sentences that stand where they are true; elsewhere "".
const STORY_SENTENCES = {
  what_next: (scene, subject) => (isWrong(scene.run, subject.row) ? "Take another step." : "The model writes it now."),
  where: (scene, subject, place) => (isElsewhere(subject)
    ? `Another attention: head ${subject.head + 1} of ${STORY_WORDS.place(scene, subject, place)}. ` : ""),
  // what a switch does in the other layers, where it reaches this one
  later: aboutLaterLayers,
  earlier: (scene, subject) => (isAsBefore(scene, subject, "R") ? "" : "Earlier layers do not divide either, so R has changed, too. "),
};

/** "the cross-attention of decoder layer 2" */
function nameInSentence({title, layer}) {
  const [stack, words] = title.split(": ");
  return words === undefined ? title : `the ${words} of ${layer === null ? "the " : ""}${stack}`;
}

/** Whether the story told before was about another head. */
const isElsewhere = ({place, head}) => told.former !== null && (told.former.place !== place || told.former.head !== head);

/** Whether the entry at the row and the key is what it is without switches. */
const isAsBefore = (scene, subject, symbol) => (
  subjectEntry(scene, subject, symbol, subject.key) === subjectEntry(sceneWith(PLAIN), subject, symbol, subject.key));

function aboutLaterLayers(scene, subject) {
  if (isAsBefore(scene, subject, "dA")) return "";
  const [before, now] = [sceneWith(PLAIN), scene].map((one) => shortNumber(subjectEntry(one, subject, "dA", subject.key)));
  return `Later layers make the mistake, too: so dA is ${now}, not ${before}.`;
}

function storyLabels({place}) {
  const found = page.places[placeIndex(place)];
  return labelsOfItem({place: found, attention: page.attentions[found.attention]}, state.item);
}

/** The word of the source that a token lies in: of a text that is read by characters, the letters around it. */
function wordAround(position) {
  const ids = session.items[state.item].ids.source, tokenizer = session.tokenizers.source;
  const end = (count) => tokenizer.decode(ids.slice(0, count)).length;
  const text = tokenizer.decode(ids);
  for (const {0: word, index} of text.matchAll(/\S+/gu)) {
    if (end(position + 1) > index && end(position + 1) <= index + word.length && end(position) < end(position + 1)) return word;
  }
  return tokenizer.tokens([ids[position]])[0]; // a blank, or end-of-sentence
}

/**
 * An index of a story in numbers; "largest" is the column of the largest entry in the row, or, as a row, that of the largest of all.
 * A token is its id, or of the `columns` of a narrowed place the one that it is in.
 */
function indexIn(word, scene, subject, {matrix, row, columns}) {
  const place = (id) => (!columns ? id : columns.includes(id) ? columns.indexOf(id) : columns.length);
  if (word === "asked") return place(askedId(scene, subject));
  if (word === "written") return place(writtenId(scene, subject));
  if (word === "largest") return row === undefined ? largestCell(matrix, null, null).row : largestCell(matrix, row, null).col;
  return ["row", "key", "other"].includes(word) ? subject[word] : Number(word);
}
