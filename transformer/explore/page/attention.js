"use strict";
// One multi-head attention, forward and backward, in doubles (Vaswani et al. 2017, section 3.2).
//
// How to use:
//   const values = forward(problem, item, tap);  {heads: [a record for each head], shared: a record of what they share}
//   backward(problem, values, tap);              adds the gradients to the records: head.dQ, shared.dC, …
//
// A record holds a Matrix for every symbol of TENSORS (tensors.js). Sizes: T queries, S keys, D features in all, d_k in
// a head. In self-attention M is X, and dX has what arrives at both. `problem` is made by problemOf (compute.js).
//
// Of an attention that is not known as a whole there is the core: Q, K and V are given, heads may share them, and G
// arrives at C, or at the O of the heads side by side.
//
// Every step of both passes goes through a tap: tap(symbol, matrix, record) returns the matrix to go on with; the
// record holds all that was computed before. That is how an entry is edited (compute.js), how a finite difference moves
// a tensor (checks.js) and how a wrong rule gets into the backward (breakages.js).

const untouched = (symbol, matrix) => matrix;

/** Taps a step, keeps it in the record under its symbol, and returns it. What is not there, as a bias, stays null. */
const stepsInto = (record, tap) => (symbol, matrix) => {
  record[symbol] = matrix && tap(symbol, matrix, record);
  return record[symbol];
};

function forward(problem, item, tap = untouched) {
  const shared = {item};
  const step = stepsInto(shared, tap);
  const {X: input, M: memory, G} = problem.items[item];
  step("G", G); // what will arrive at the output in the backward
  const X = step("X", input); // (T, D)
  const M = shared.M = problem.selfAttention ? X : tap("M", memory, shared); // (S, D)
  // O: each head attends with its own projections
  const heads = problem.heads.map((parameters, index) => forwardHead(problem, {item, index, X, M}, parameters, tap));
  // C: the heads' O side by side
  const joined = sideBySide(heads.map(({O}) => O)); // (T, D)
  const C = problem.joined ? step("C", joined) : joined;
  // Y = C W_O + b_O
  shared.output = problem.whole ? step("Y", affine(C, step("WO", problem.WO), step("bO", problem.bO))) : C; // (T, D)
  return {heads, shared};
}

function forwardHead(problem, head, parameters, tap) {
  const step = stepsInto(head, tap);
  const {masks, dropped} = problem.items[head.item];
  const mask = head.mask = masks && masks[head.index];
  const kept = head.kept = dropped && dropped[head.index];
  const {WQ, bQ, WK, bK, WV, bV} = parameters; // (D, d_k) and (1, d_k)
  const given = problem.items[head.item].core?.[head.index];
  // Q = X W_Q + b_Q,  K = M W_K + b_K,  V = M W_V + b_V
  const Q = step("Q", given ? given.Q : affine(step("Xq", head.X), step("WQ", WQ), step("bQ", bQ))); // (T, d_k)
  const K = step("K", given ? given.K : affine(step("Xk", head.M), step("WK", WK), step("bK", bK))); // (S, d_k)
  const V = step("V", given ? given.V : affine(step("Xv", head.M), step("WV", WV), step("bV", bV))); // (S, d_k)
  // R = Q Kᵀ
  const R = step("R", matmul(Q, transpose(K))); // (T, S)
  // S = R/√d_k
  const S = step("S", scaleMatrix(R, problem.scale));
  // S̄ = S where the mask allows, −∞ elsewhere
  const Sm = step("Sm", mask ? where(mask, S, -Infinity) : S);
  // A = softmax(S̄), row by row
  const A = step("A", softmaxRows(Sm));
  // A′ = A∘kept/(1 − p)
  const Ad = step("Ad", drop(A, kept, problem.p));
  // O = A′ V
  step("O", matmul(Ad, V)); // (T, d_k)
  return head;
}

/** exp(S̄ᵢⱼ) / Σⱼ exp(S̄ᵢⱼ) in every row i; zeros in a row that may attend to nothing, whose scores are all −∞. */
function softmaxRows(scores) {
  const out = new Matrix(scores.rows, scores.cols);
  for (let i = 0; i < scores.rows; i++) {
    const top = Math.max(...scores.row(i)); // taken from every score, so that no exponential overflows
    if (top === -Infinity) continue;
    const exponentials = scores.row(i).map((score) => Math.exp(score - top));
    const total = exponentials.reduce((sum, x) => sum + x, 0);
    out.row(i).set(exponentials.map((x) => x / total));
  }
  return out;
}

/** Dropout by a mask drawn before (1 = kept; null: no dropout). It is linear: its gradient is the same function. */
const drop = (a, kept, p) => (kept ? scaleMatrix(timesEach(a, kept), 1 / (1 - p)) : a);

function backward(problem, {heads, shared}, tap = untouched) {
  const step = stepsInto(shared, tap);
  const {G} = shared;
  const dC = problem.whole ? backwardOutput(shared, step) : G;
  if (problem.joined) shared.dC = dC;
  // forward: C is the heads' O side by side    so here: a head's dO is its columns of dC
  const width = dC.cols / heads.length;
  for (const head of heads) {
    backwardHead(problem, head, columnsOf(dC, head.index * width, (head.index + 1) * width), tap);
  }
  // forward: heads may share Q, K or V         so here: its gradient is the sum over these heads
  for (const symbol of Object.keys(problem.sharing)) {
    const sums = heads.map(({index}) => addAll(headsSharing(problem, symbol, index).map((head) => heads[head][`d${symbol}`])));
    heads.forEach((head, index) => { head[`d${symbol}`] = sums[index]; });
  }
  if (!problem.whole) return;
  // forward: every head reads X and M          so here: their gradients are sums over the heads, path by path
  const [dXq, dXk, dXv] = ["dXq", "dXk", "dXv"].map((path) => step(path, addAll(heads.map((head) => head[path]))));
  step("dX", problem.selfAttention ? addAll([dXq, dXk, dXv]) : dXq);
  step("dM", problem.selfAttention ? null : addMatrices(dXk, dXv));
}

function backwardOutput(shared, step) {
  const {G, C, WO} = shared;
  shared.dY = G;
  // forward: Y = C W_O + b_O                   so here: dC = G W_Oᵀ,  dW_O = Cᵀ G,  db_O = the sum of G's rows
  step("dWO", matmul(transpose(C), G));
  step("dbO", sumOfRows(G));
  return step("dC", matmul(G, transpose(WO)));
}

/** The heads that have the queries, keys or values in common with `head`, in a row; `head` alone most often. */
function headsSharing({sharing}, symbol, head) {
  const count = sharing[symbol] ?? 1;
  return Array.from({length: count}, (_, n) => head - (head % count) + n);
}

function backwardHead(problem, head, columnsOfHead, tap) {
  const step = stepsInto(head, tap);
  const {mask, kept, Xq, Xk, Xv, WQ, WK, WV, Q, K, V, A, Ad} = head;
  const dO = step("dO", columnsOfHead); // (T, d_k)
  // forward: O = A′ V                          so here: dV = A′ᵀ dO,  dA′ = dO Vᵀ
  const dV = step("dV", matmul(transpose(Ad), dO)); // (S, d_k)
  const dAd = step("dAd", matmul(dO, transpose(V))); // (T, S)
  // forward: A′ = A∘kept/(1 − p)               so here: dA = dA′∘kept/(1 − p)
  const dA = step("dA", drop(dAd, kept, problem.p));
  // forward: A = softmax(S̄), row by row        so here: dS̄ = A∘(dA − D)  with  Dᵢ = Σⱼ Aᵢⱼ dAᵢⱼ
  const D = step("D", rowSums(timesEach(A, dA))); // (T, 1)
  const dSm = step("dSm", timesEach(A, minusColumn(dA, D)));
  // forward: S̄ = S where the mask allows       so here: dS = dS̄ where the mask allows, 0 elsewhere
  const dS = step("dS", mask ? where(mask, dSm, 0) : dSm);
  // forward: S = R/√d_k                        so here: dR = dS/√d_k
  const dR = step("dR", scaleMatrix(dS, problem.scale));
  // forward: R = Q Kᵀ                          so here: dQ = dR K,  dK = dRᵀ Q
  const dQ = step("dQ", matmul(dR, K)); // (T, d_k)
  const dK = step("dK", matmul(transpose(dR), Q)); // (S, d_k)
  if (!problem.whole) return;
  // forward: Q = X W_Q + b_Q                   so here: dW_Q = Xᵀ dQ,  db_Q = the sum of dQ's rows,  dX = dQ W_Qᵀ
  step("dWQ", matmul(transpose(Xq), dQ));
  step("dbQ", sumOfRows(dQ));
  step("dXq", matmul(dQ, transpose(WQ)));
  // forward: K = M W_K + b_K                   so here: dW_K = Mᵀ dK,  db_K = the sum of dK's rows,  dM = dK W_Kᵀ
  step("dWK", matmul(transpose(Xk), dK));
  step("dbK", sumOfRows(dK));
  step("dXk", matmul(dK, transpose(WK)));
  // forward: V = M W_V + b_V                   so here: dW_V = Mᵀ dV,  db_V = the sum of dV's rows,  dM = dV W_Vᵀ
  step("dWV", matmul(transpose(Xv), dV));
  step("dbV", sumOfRows(dV));
  step("dXv", matmul(dV, transpose(WV)));
}
