"use strict";
// One multi-head attention on a tape (Vaswani et al. 2017, section 3.2); the tape has its backward.
//
// How to use:
//   const place = placeOf(path, "attention", item, problem);   an attention as a place, with its records
//   const output = runAttention(tape, place, given);           the node of Y (T, D); place.heads and place.shared have
//                                                              the rest: head.Q, shared.C, and after the backward head.dQ …
//       given    {X, M, heads: [{WQ, bQ, WK, bK, WV, bV}], WO, bO}: nodes; in self-attention M is null, and X in its place
//       problem  {numHeads, scale, p, selfAttention, whole, joined, sharing, items: [{masks, dropped}]}
//
// Sizes: T queries, S keys, D features in all, d_k in a head. The symbols are those of places/attention_tensors.js. In
// self-attention dX has what arrives at both, X and M.
//
// Of an attention that is not known as a whole there is the core: given.core has a node for Q, K and V of each head.
// Heads that share one have the same node. The output is then C, or the O of the heads side by side.

/** A place in one batch item, with a record for each head (one of nothing where there are no heads) and one for all. */
const placeOf = (path, kind, item, problem) => {
  const place = {path, kind, item, problem, heads: [{}]};
  place.shared = {item, place};
  return place;
};

function runAttention(tape, place, {X: input, M: memory, heads, WO, bO, core}) {
  const {problem, shared, item} = place;
  place.heads = Array.from({length: problem.numHeads}, (_, index) => ({item, index, place}));
  if (problem.whole) {
    const X = tape.name(input, shared, "X"); // (T, D)
    const M = problem.selfAttention ? X : tape.name(memory, shared, "M"); // (S, D)
    shared.M = M.value;
    // Q = X W_Q + b_Q,  K = M W_K + b_K,  V = M W_V + b_V
    const [Xq, Xk, Xv] = [tape.name(X, shared, "Xq"), tape.name(M, shared, "Xk"), tape.name(M, shared, "Xv")];
    core = place.heads.map((head, index) => {
      const {WQ, bQ, WK, bK, WV, bV} = heads[index]; // (D, d_k) and (1, d_k)
      const project = (symbol, x, weight, bias) => tape.affine(
        tape.name(x, head, `X${symbol.toLowerCase()}`), tape.name(weight, head, `W${symbol}`), tape.name(bias, head, `b${symbol}`));
      return {Q: project("Q", Xq, WQ, bQ), K: project("K", Xk, WK, bK), V: project("V", Xv, WV, bV)};
    });
  }
  // O: each head attends with its own queries, keys and values
  const joined = tape.sideBySide(runHeads(tape, place, core)); // (T, D)
  const C = problem.joined ? tape.name(joined, shared, "C") : joined;
  if (!problem.whole) return C;
  // Y = C W_O + b_O
  return tape.name(tape.affine(C, tape.name(WO, shared, "WO"), tape.name(bO, shared, "bO")), shared, "Y"); // (T, D)
}

function runHeads(tape, {problem, heads, item}, core) {
  const {masks, dropped} = problem.items[item];
  for (const symbol of Object.keys(problem.sharing)) {
    for (const group of new Set(heads.map(({index}) => headsSharing(problem, symbol, index)[0]))) {
      const members = headsSharing(problem, symbol, group);
      const one = tape.share(core[group][symbol], members.map((index) => heads[index]), symbol);
      for (const index of members) core[index] = {...core[index], [symbol]: one};
    }
  }
  return heads.map((head, index) => {
    head.mask = masks && masks[index];
    head.kept = dropped && dropped[index];
    return runHead(tape, head, core[index], problem);
  });
}

function runHead(tape, head, given, {scale, p}) {
  const {mask, kept} = head;
  const Q = tape.name(given.Q, head, "Q"); // (T, d_k)
  const K = tape.name(given.K, head, "K"); // (S, d_k)
  const V = tape.name(given.V, head, "V"); // (S, d_k)
  // R = Q Kᵀ
  const R = tape.name(tape.matmul(Q, tape.transpose(K)), head, "R"); // (T, S)
  // S = R/√d_k
  const S = tape.name(tape.scale(R, scale), head, "S");
  // S̄ = S where the mask allows, −∞ elsewhere
  const Sm = tape.name(mask ? tape.where(mask, S) : S, head, "Sm");
  // A = softmax(S̄), row by row
  const A = tape.name(tape.softmaxRows(Sm, head), head, "A");
  // A′ = A∘kept/(1 − p)
  const Ad = tape.name(kept ? tape.timesEach(A, keepingFactors(kept, p)) : A, head, "Ad");
  // O = A′ V
  return tape.name(tape.matmul(Ad, V), head, "O"); // (T, d_k)
}

/** What dropout multiplies by, after a mask that was drawn before: 1/(1 − p) where it is 1, 0 where the cell is dropped. */
const keepingFactors = (kept, p) => scaleMatrix(kept, 1 / (1 - p));

/** The heads that have the queries, keys or values in common with `head`, in a row; `head` alone most often. */
function headsSharing({sharing}, symbol, head) {
  const count = sharing[symbol] ?? 1;
  return Array.from({length: count}, (_, n) => head - (head % count) + n);
}
