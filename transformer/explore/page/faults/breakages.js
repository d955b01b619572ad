"use strict";
// Mistakes that have been made in the backward of attention, to be made here on purpose: the checks then tell which
// gradients are wrong.
//
// How to use:
//   BREAKAGES -> [{key, title, needs, explanation(problem), applies(problem), replaces(problem)}]
//       `needs` says what an attention must have for the mistake to be possible
//
// `replaces` gives, for each tensor that is computed otherwise, {formula, rule, matrix(right, record, problem)}:
// the wrong formula, its cells (rules.js), and the matrix in place of the right one, made of the record so far.

const BREAKAGES = [
  {
    key: "batch",
    title: "divide by the batch size",
    explanation: ({items}) => "The softmax backward divides by B, the number of sentences in the batch, as a mean over them "
      + "would. Every gradient before it is too small by that factor; the loss still falls, and nobody notices. "
      + (items.length > 1 ? `Here B = ${items.length}.`
        : `Here there is one sentence, and dividing by 1 would hide the mistake: the page pretends that B = ${PRETENDED_BATCH}.`),
    applies: () => true,
    replaces: () => ({
      dSm: {
        formula: (problem) => `dS̄ = A∘(dA − D)/B, B = ${dividingBatch(problem)}`,
        rule: each(entry("A"), lessColumn("dA", "D"), constant("1/B", (problem) => 1 / dividingBatch(problem))),
        matrix: (right, _, problem) => scaleMatrix(right, 1 / dividingBatch(problem)),
      },
    }),
  },
  {
    key: "rowsum",
    title: "drop −D",
    explanation: () => "The softmax backward as if every weight depended on its own score alone: without −D, what a score "
      + "does to the other weights of its row is forgotten, and the rows of dS no longer sum to 0.",
    applies: () => true,
    replaces: () => ({
      dSm: {
        formula: "dS̄ = A∘dA",
        rule: each(entry("A"), entry("dA")),
        matrix: (_, {A, dA}) => timesEach(A, dA),
      },
    }),
  },
  {
    key: "transpose",
    title: "forget a transpose",
    explanation: () => "A matrix is used as it stands where its transpose belongs. It is square, so every shape still fits, "
      + "and nothing raises an error: dK = dR Q with as many keys as queries, else dC = dY W_O.",
    applies: () => true,
    replaces: (problem) => (hasSquareScores(problem) ? {
      dK: {
        formula: "dK = dR Q",
        rule: product("dR", "Q"),
        matrix: (_, {dR, Q}) => matmul(dR, Q),
      },
    } : {
      dC: {
        formula: "dC = dY W_O",
        rule: product("dY", "WO"),
        matrix: (_, {dY, WO}) => matmul(dY, WO),
      },
    }),
  },
  {
    key: "mask",
    title: "forget the mask",
    explanation: () => "The backward computes the weights again from the scores, to save memory, and forgets the mask: "
      + "Ã = softmax(S). Forbidden keys then get a share of the gradient, those of the future too.",
    needs: "a mask that hides something",
    applies: (problem) => problem.items.some(({mask}) => mask?.data.includes(0)),
    replaces: () => ({
      dV: {
        formula: "dV = Ãᵀ dO",
        rule: product("unmaskedAᵀ", "dO"),
        matrix: (_, head) => matmul(transpose(weightsWithoutMask(head).unmaskedA), head.dO),
      },
      D: {
        formula: "Dᵢ = Σⱼ Ãᵢⱼ dAᵢⱼ",
        rule: rowDotOf("unmaskedA", "dA"),
        matrix: (_, head) => rowSums(timesEach(weightsWithoutMask(head).unmaskedA, head.dA)),
      },
      dSm: {
        formula: "dS̄ = Ã∘(dA − D)",
        rule: each(entry("unmaskedA"), lessColumn("dA", "D")),
        matrix: (_, head) => timesEach(weightsWithoutMask(head).unmaskedA, minusColumn(head.dA, head.D)),
      },
      dS: {
        formula: "dS = dS̄",
        rule: each(entry("dSm")),
        matrix: (_, {dSm}) => dSm,
      },
    }),
  },
];

/** The head, its record with the weights as they are without the mask. */
function weightsWithoutMask(head) {
  head.unmaskedA ??= softmaxRows(head.S);
  return head;
}

/** What the mistake divides by. Dividing by 1 changes nothing, so a batch of one pretends to be larger. */
const PRETENDED_BATCH = 8;
const dividingBatch = ({items}) => (items.length > 1 ? items.length : PRETENDED_BATCH);

const hasSquareScores = ({items}) => items.every(({X, M}) => M === null || X.rows === M.rows);
