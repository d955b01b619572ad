"use strict";
// The page's data, what is computed from them, and what the parts of the page read of it.
//
// How to use:
//   currentView() -> {page, session, run, state, place, attention, result, head, labels, mask}
//       page       the decoded data, with page.places      place      the chosen one: see places.js
//       session    the model (maths/session.js)            run  what it computed of the present texts
//       attention  the entry of page.attentions for the place, or null
//       result     what is known of the place, for the current switches    head  result.heads[state.head]
//       labels     by axis, the names of its tokens: {query, key, vocabulary}; see places/labels.js
//       mask       Matrix of 0/1 (1 = may attend), or null
//   matrixOf(view, symbol) -> the Matrix with that symbol, of the head or shared by the heads
//
// A panel is a file that registers itself: PANELS.push({id: "softmax", title: "Softmax", render(container, view) {…}}).
// `render` gets an empty container each time something changed, and is called for the open panel only. A panel with
// `kinds: ["attention"]` is there in places of these kinds. Give an element that can have the keyboard focus a data-key of
// its own ("softmax:row:3"): after a redraw the focus returns to it.

const PANELS = [];
const panelsOf = (view) => PANELS.filter(({kinds}) => !kinds || kinds.includes(view.place.kind));

let page = null;
let session = null;

/** The options of the computation that the switches stand for. */
const optionsOf = ({scaling, masking, edit, broken}) => ({scaling, masking, edit, broken});

/** The model's run, by default with what the switches stand for. */
const currentRun = (options = optionsOf(state)) => session.run({item: state.item, options});

/** What is known of the chosen place, likewise. */
const currentResult = (options = optionsOf(state)) => currentRun(options).places.get(page.places[state.place].path);

const numItems = () => session.items.length;

/** The tokens of an item: {source, target: as the decoder reads it, next: what it is to write}. */
const tokensOf = (item) => session.tokens(item);

/** The names of a place's rows and columns in a batch item: see places/labels.js. */
function labelsOfItem({place, attention}, item) {
  const tokens = tokensOf(item);
  const rows = (side) => (side === "target" ? rowNames(tokens.target, tokens.next) : tokenNames(tokens.source));
  if (attention) return {query: rows(attention.queries), key: tokenNames(tokens[attention.keys])};
  return {query: rows(place.side === "decoder" ? "target" : "source")};
}

/** The names of the tokens of a table, or of those that are shown of it (places/narrow.js). */
function vocabularyNames({path}, {columns, others}) {
  const tokenizer = session.tokenizers[path.startsWith("encoder") ? "source" : "target"];
  const names = tokenizer.tokens(columns ?? [...tokenizer.vocabulary.keys()]).map(withSigns);
  return others ? [...names, `${others} others`] : names;
}

function currentView() {
  const place = page.places[state.place];
  const attention = place.attention === null ? null : page.attentions[place.attention];
  const [run, result] = [currentRun(), currentResult()];
  const head = result.heads[state.head];
  const labels = labelsOfItem({place, attention}, state.item);
  if (["embedding", "output"].includes(place.kind)) labels.vocabulary = vocabularyNames(place, result);
  return {page, session, run, state, place, attention, result, head, labels, mask: head.mask ?? null};
}

/** The matrix of a symbol, from the head or from what the heads share. */
function matrixOf(view, symbol) {
  return tensorAt(view.result, view.state.head, symbol);
}
