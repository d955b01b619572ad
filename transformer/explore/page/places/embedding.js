"use strict";
// The kind "embedding": each token becomes a row of numbers, and its position is added.
//
//   forward   E = the rows of the table W that belong to the tokens     Y = √d_model·E + P
//   backward  dE = √d_model·dY     dP = dY, where the positions are learnt
//             dW: every row of dE is added to the row of its token, so a token that occurs twice collects twice

const idsOf = ({shared: {shown, ids}}) => shown ?? ids;
const EMBEDDING_SCALE = constant("√d_model", ({embeddingScale}) => embeddingScale);

/** One row of the table for each token. */
const rowOfToken = {
  cell(reader, i, j) {
    const row = idsOf(reader)[i];
    return {terms: [termOf(reader.factor("W", row, j))], highlights: [reader.highlight("W", row, null)]};
  },
};

/** The sum, over all places where the token occurs, in every sentence. */
const whereverTokenOccurs = {
  cell(reader, i, j) {
    const terms = reader.ofBatch().flatMap((source) => idsOf(source).flatMap(
      (id, position) => (id === i ? [termOf(source.factor("dE", position, j))] : [])));
    const here = idsOf(reader).flatMap((id, position) => (id === i ? [reader.highlight("dE", position, j)] : []));
    const note = terms.length === 0 ? "This token does not occur here, so its row learns nothing." : null;
    return {terms, sum: sumOf(terms), note, highlights: here};
  },
};

function rowsOfOtherTokensAreZero({items, shared: {dW}}) {
  if (!dW) return null;
  const occurs = new Set(items.flatMap(({shared: {ids}}) => Array.from(ids)));
  if (occurs.size === dW.rows) return null;
  return {
    key: "absent",
    statement: "A token that does not occur has a row of zeros in dW.",
    residual: largestOf(makeMatrix(dW.rows, dW.cols, (i, j) => (occurs.has(i) ? 0 : dW.at(i, j)))),
    scale: 0,
  };
}

/** Nothing is lost between the rows of the tokens and the table. */
function tableCollectsAll({items, shared: {dW}}) {
  if (!dW) return null;
  const came = items.map(({shared: {dE}}) => sumOfRows(dE));
  return {
    key: "collected",
    statement: "The rows of dW have the same sum as the rows of dE.",
    residual: largestOf(combine(sumOfRows(dW), addAll(came), (x, y) => x - y)),
    scale: largestOf(addAll(items.map(({shared: {dE}}) => sumOfRows(absoluteOf(dE))))),
  };
}

defineKind("embedding", {
  tensors: withGradients({
    W: {
      name: "table of the vocabulary", axes: ["vocabulary", "model"],
      rule: given("W", A_PARAMETER),
      next: "E = the tokens' rows of W", backward: "dW: each row of dE is added to the row of its token",
      gradientRule: whereverTokenOccurs,
    },
    E: {
      name: "rows of the tokens",
      forward: "E = the tokens' rows of W", rule: rowOfToken,
      next: "Y = √d_model·E + P", backward: "dE = √d_model·dY", gradientRule: each(entry("dY"), EMBEDDING_SCALE),
    },
    P: {
      name: "positions",
      rule: given("P", "One row for each position, the same in every sentence."),
      next: "Y = √d_model·E + P", backward: "dP = dY", gradientRule: each(entry("dY")),
    },
    Y: {
      name: "embedded tokens",
      forward: "Y = √d_model·E + P", rule: added([EMBEDDING_SCALE, entry("E")], [entry("P")]),
      next: AFTERWARDS, backward: "dY", gradientRule: given("dY", ARRIVES),
    },
  }),
  forwardOrder: ["W", "E", "P", "Y"],
  backwardOrder: ["dY", "dP", "dE", "dW"],
  columns: [["W"], ["E"], ["P"], ["Y"]],
  equations: {E: "rows_of W", Y: "√d_model ∘ E + P", dP: "dY", dE: "√d_model ∘ dY", dW: "Σ_by_token dE"},
  words: {
    W: "One row for each token of the vocabulary: all that the model knows of it, before it has seen the sentence.",
    E: "A token is a row of the table: which token it is, and nothing of where it stands.",
    P: "Attention does not see an order, so every position adds numbers of its own.",
    Y: "Which token it is, and where it stands, in one row: the stream begins.",
    dY: "What the loss makes of the first row of the stream: every layer above has added to it.",
    dP: "It was added as it is, so it gets the gradient as it is.",
    dE: "What was multiplied on the way forward is multiplied on the way back.",
    dW: "A row of the table was read wherever its token stands, so it collects the gradient of every such place: a token "
      + "that occurs twice adds twice, and one that does not occur learns nothing.",
  },
  shortNames: {W: "table", E: "tokens", P: "positions", Y: "output"},
  identities: [rowsOfOtherTokensAreZero, tableCollectsAll],
});
