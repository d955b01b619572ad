"use strict";
// The texts of the model: those of the page, and those that a reader types.
//
// How to use:
//   openingTexts(item) -> {source, target}   with which the page opened
//   useTexts()    the session gets the texts of the state
//   takeTexts({source, target}, item)     those of any sentence of the batch: null, or why it does not take them
//   refusal       why it did not take them: {side, message}, or null

let refusal = null;

function openingTexts(item) {
  const {source, target} = session.opening[item];
  return {source, target};
}

/** A text that the session refuses stays in its field, with the reason below it; the model goes on with the texts before. */
function useTexts() {
  refusal = takeTexts({source: state.source, target: state.target}, state.item);
  Object.assign(state, usedTexts());
}

function takeTexts(texts, item) {
  try {
    session.setTexts(texts, item);
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    return {side: error.side, message: error.message};
  }
  return null;
}

/** The texts that the session has of the chosen item, as fields of the state. */
function usedTexts() {
  const item = session.items[state.item];
  const isOpening = item === session.opening[state.item];
  return {source: item.source, target: item.written && !isOpening ? null : item.target};
}
