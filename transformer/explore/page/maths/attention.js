"use strict";
// One multi-head attention on a tape (Vaswani et al. 2017, section 3.2); the tape has its backward.
//
// How to use:
//   const place = placeOf(path, "attention", item, problem);   an attention as a place, with its records
//   const output = runAttention(tape, place, given);           the node of Y (T, D); place.heads and place.shared have
//                                                              the rest: head.Q, shared.C, and after the backward head.dQ …
//       given    {X, M, heads: [{WQ, bQ, WK, bK, WV, bV}], WO, bO}: nodes; in self-attention M is null, and X in its place
//       problem  {numHeads, scale, selfAttention, items: [{X, M, mask}]}, and `past`, a list, of a model that writes token by
//                token: the keys and values of each head, to which self-attention adds those of X
//
// Sizes: T queries, S keys, D features in all, d_k in a head. The symbols are those of places/attention_tensors.js. In
// self-attention dX has what arrives at both, X and M.

/** A place in one batch item, with a record for each head (one of nothing where there are no heads) and one for all. */
const placeOf = (path, kind, item, problem) => {
  const place = {path, kind, item, problem, heads: [{}]};
  place.shared = {item, place};
  return place;
};

function runAttention(tape, place, {X: input, M: memory, heads, WO, bO}) {
  const {problem, shared, item} = place;
  place.heads = Array.from({length: problem.numHeads}, (_, index) => ({item, index, place, mask: problem.items[item].mask}));
  const X = tape.name(input, shared, "X"); // (T, D)
  const M = problem.selfAttention ? X : tape.name(memory, shared, "M"); // (S, D)
  shared.M = M.value;
  const [Xq, Xk, Xv] = [tape.name(X, shared, "Xq"), tape.name(M, shared, "Xk"), tape.name(M, shared, "Xv")];
  // O: each head attends with its own queries, keys and values
  const O = place.heads.map((head, index) => runHead(tape, head, {Xq, Xk, Xv, ...heads[index]}, problem));
  const C = tape.name(tape.sideBySide(O), shared, "C"); // (T, D)
  // Y = C W_O + b_O
  return tape.name(tape.affine(C, tape.name(WO, shared, "WO"), tape.name(bO, shared, "bO")), shared, "Y"); // (T, D)
}

function runHead(tape, head, {Xq, Xk, Xv, WQ, bQ, WK, bK, WV, bV}, {scale, selfAttention, past = []}) {
  const named = (node, symbol) => tape.name(node, head, symbol);
  const project = (symbol, x, weight, bias) => named(tape.affine(
    named(x, `X${symbol.toLowerCase()}`), named(weight, `W${symbol}`), named(bias, `b${symbol}`)), symbol);
  // Q = X W_Q + b_Q,  K = M W_K + b_K,  V = M W_V + b_V
  const Q = project("Q", Xq, WQ, bQ); // (T, d_k)
  let [K, V] = past[head.index] ?? []; // (S, d_k) both
  if (selfAttention || !K) {
    const [newK, newV] = [project("K", Xk, WK, bK), project("V", Xv, WV, bV)];
    [K, V] = past[head.index] = K ? [tape.below(K, newK), tape.below(V, newV)] : [newK, newV];
  }
  // R = Q Kᵀ
  const R = named(tape.matmul(Q, tape.transpose(K)), "R"); // (T, S)
  // S = R/√d_k
  const S = named(tape.scale(R, scale), "S");
  // S̄ = S where the mask allows, −∞ elsewhere
  const Sm = named(head.mask ? tape.where(head.mask, S) : S, "Sm");
  // A = softmax(S̄), row by row
  const A = named(tape.softmaxRows(Sm, head), "A");
  // O = A V
  return named(tape.matmul(A, V), "O"); // (T, d_k)
}
