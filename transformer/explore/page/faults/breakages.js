"use strict";
// Mistakes that have been made in the backward of attention, to be made here on purpose: the checks then tell which
// gradients are wrong.
//
// How to use:
//   BREAKAGES -> [{key, title, needs, explanation(problem), applies(problem), replaces(problem)}]
//       `needs` says what an attention must have for the mistake to be possible
//   breakageOf(key, problem) -> the one of that key, or null where it does not apply
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
      + "and nothing raises an error: dK = dR Q with as many keys as queries, else dC = G W_O.",
    needs: "as many keys as queries",
    applies: (problem) => problem.whole || hasSquareScores(problem),
    replaces: (problem) => (hasSquareScores(problem) ? {
      dK: {
        formula: "dK = dR Q",
        rule: product("dR", "Q", {shared: "K"}),
        matrix: (_, {dR, Q}) => matmul(dR, Q),
      },
    } : {
      dC: {
        formula: "dC = G W_O",
        rule: product("G", "WO"),
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
    applies: (problem) => problem.items.some(({masks}) => masks && masks.some((mask) => mask.data.includes(0))),
    replaces: () => ({
      dV: {
        formula: "dV = Ã′ᵀ dO",
        rule: product("unmaskedAdᵀ", "dO", {shared: "V"}),
        matrix: (_, head, problem) => transposedTimes(weightsWithoutMask(head, problem).unmaskedAd, head.dO),
      },
      D: {
        formula: "Dᵢ = Σⱼ Ãᵢⱼ dAᵢⱼ",
        rule: rowDotOf("unmaskedA", "dA"),
        matrix: (_, head, problem) => rowSums(timesEach(weightsWithoutMask(head, problem).unmaskedA, head.dA)),
      },
      dSm: {
        formula: "dS̄ = Ã∘(dA − D)",
        rule: each(entry("unmaskedA"), lessColumn("dA", "D")),
        matrix: (_, head, problem) => timesEach(weightsWithoutMask(head, problem).unmaskedA, minusColumn(head.dA, head.D)),
      },
      dS: {
        formula: "dS = dS̄",
        rule: each(entry("dSm")),
        matrix: (_, {dSm}) => dSm,
      },
    }),
  },
];

/** The breakage of this key, or null where there is nothing it could break: no mask to forget. */
function breakageOf(key, problem) {
  const found = BREAKAGES.find((breakage) => breakage.key === key);
  return found && found.applies(problem) ? found : null;
}

/** The head, its record with the weights as they are without the mask, before and after dropout. */
function weightsWithoutMask(head, {p}) {
  if (!head.unmaskedA) {
    head.unmaskedA = softmaxRows(head.S);
    head.unmaskedAd = head.kept ? timesEach(head.unmaskedA, keepingFactors(head.kept, p)) : head.unmaskedA;
  }
  return head;
}

/** What the mistake divides by. Dividing by 1 changes nothing, so a batch of one pretends to be larger. */
const PRETENDED_BATCH = 8;
const dividingBatch = ({items}) => (items.length > 1 ? items.length : PRETENDED_BATCH);

const hasSquareScores = ({whole, items}) => items.every(({X, M, core}) => (
  whole ? M === null || X.rows === M.rows : core[0].Q.rows === core[0].K.rows));
