"use strict";
// What stands on the stage: the equation of each step, with its operands.
//
// How to use:
//   equationOf(view, symbol) -> [{text} or {symbol, matrix, name, transposed, head, note}], left of the equals sign
//   formulasOf(view, symbol) -> {forward, backward, replaced}, as text; replaced: "break it" has changed the formula
//   workedCell(view, symbol, row, col) -> what explainCell says
//
// Without dropout A′ is A, and without a mask S̄ is S. The page then shows A and S alone, and their gradients, where the
// mathematics computes A′ and S̄ as well. A mask that is only switched off keeps its place.

// A symbol is drawn as a grid ("ᵀ" after it: its transpose is meant, but it is drawn as it is, queries from top to bottom);
// "O*" is the O of every head, "+dXq" is summed over the heads; the rest is written as it stands.
const EQUATIONS = {
  Q: "X · WQ + bQ", K: "M · WK + bK", V: "M · WV + bV", R: "Q · Kᵀ", S: "R ÷ √d_k", Sm: "mask( S )", A: "softmax( Sm )",
  Ad: "A ∘ kept/(1−p)", O: "Ad · V", C: "O*", Y: "C · WO + bO",
  dWO: "Cᵀ · G", dbO: "Σ_rows G", dC: "G · WOᵀ", dO: "columns_of dC",
  dV: "Adᵀ · dO", dAd: "dO · Vᵀ", dA: "dAd ∘ kept/(1−p)",
  D: "Σ_keys A ∘ dA", dSm: "A ∘ ( dA − D )", dS: "mask( dSm )", dR: "dS ÷ √d_k", dQ: "dR · K", dK: "dRᵀ · Q",
  dWQ: "Xᵀ · dQ", dbQ: "Σ_rows dQ", dWK: "Mᵀ · dK", dbK: "Σ_rows dK", dWV: "Mᵀ · dV", dbV: "Σ_rows dV",
  dXq: "dQ · WQᵀ", dXk: "dK · WKᵀ", dXv: "dV · WVᵀ", dX: "+dXq + +dXk + +dXv", dM: "+dXk + +dXv",
};
// As the rules of "break it" have them; what is missing here is a product that its rule describes.
const BROKEN_EQUATIONS = {
  batch: {dSm: "A ∘ ( dA − D ) ÷ B"},
  rowsum: {dSm: "A ∘ dA"},
  mask: {D: "Σ_keys unmaskedA ∘ dA", dSm: "unmaskedA ∘ ( dA − D )", dS: "dSm"},
};
TENSORS.unmaskedA = {...TENSORS.A, symbol: "unmaskedA", label: "Ã", name: "weights without the mask"};
TENSORS.unmaskedAd = {...TENSORS.Ad, symbol: "unmaskedAd", label: "Ã′", name: "weights without the mask, after dropout"};

const hasDropout = (view) => view.attention.dropped !== null;
const hasMask = (view) => view.attention.mask !== null;
const withoutPrimes = (view, text) => (hasDropout(view) ? text : text.replaceAll("A′", "A").replaceAll("Ã′", "Ã"));

/** A text without the tensors that are not shown. */
const asShown = (view, text) => (hasMask(view) ? withoutPrimes(view, text) : withoutPrimes(view, text).replaceAll("S̄", "S"));

/** The symbol whose rule makes a tensor: without dropout dA comes straight from dO Vᵀ, without a mask dS from dA. */
function ruleSymbol(view, symbol) {
  if (symbol === "dA" && !hasDropout(view)) return "dAd";
  return symbol === "dS" && !hasMask(view) ? "dSm" : symbol;
}

/** The symbol under which the page shows a tensor. */
const WITHOUT_DROPOUT = {Ad: "A", dAd: "dA", unmaskedAd: "unmaskedA"};
const WITHOUT_MASK = {Sm: "S", dSm: "dS"};
const shownSymbol = (view, symbol) => (
  (hasDropout(view) ? undefined : WITHOUT_DROPOUT[symbol]) ?? (hasMask(view) ? undefined : WITHOUT_MASK[symbol]) ?? symbol);

/** The tensor that goes on to the next step: A as A′, S as S̄. */
const passedOn = (view, symbol) => (
  {...(hasDropout(view) ? {} : {A: "Ad", dA: "dAd"}), ...(hasMask(view) ? {} : {S: "Sm", dS: "dSm"})}[symbol] ?? symbol);

/** The breakage's own rule for a tensor, or undefined. */
const brokenRule = (view, symbol) => (
  view.result.broken ? view.result.broken.replaces(view.result.problem)[ruleSymbol(view, symbol)] : undefined);

function formulasOf(view, symbol) {
  const {problem} = view.result;
  const {label, name, forward} = factsOf(ruleSymbol(view, symbol), problem);
  const {backward} = factsOf(symbol in ofCore(problem) ? symbol : passedOn(view, symbol), problem);
  const broken = brokenRule(view, symbol);
  const write = (formula) => {
    const spelled = asShown(view, spell(formula, view.result));
    return view.state.scaling ? spelled : spelled.replace("/√d_k", "");
  };
  const made = isGradient(symbol) || forward.includes("=") ? forward : `${label}, the ${name}`;
  return {forward: write(made), backward: write(broken ? broken.formula : backward), replaced: Boolean(broken)};
}

function equationText(view, symbol) {
  const {problem} = view.result;
  if (symbol in ofCore(problem)) return ""; // given
  const broken = brokenRule(view, symbol);
  const overHeads = tensorOf(symbol) in problem.sharing ? "Σ_heads " : ""; // of these, one is shown
  if (!broken && symbol === "dX" && view.attention.m !== null) return "+dXq";
  if (!broken) return (isGradient(symbol) ? overHeads : "") + (EQUATIONS[ruleSymbol(view, symbol)] ?? "");
  const {left, right} = broken.rule;
  if (!left) return BROKEN_EQUATIONS[view.result.broken.key][ruleSymbol(view, symbol)];
  return [left, right].map((operand) => operand.symbol + (operand.transposed ? "ᵀ" : "")).join(" · ");
}

function equationOf(view, symbol) {
  const {problem} = view.result;
  const scale = !view.state.scaling ? "÷ 1" : problem.usualScale ? "÷ √d_k" : `· ${scaleText(problem)}`;
  const text = equationText(view, symbol).replace("÷ √d_k", scale);
  const parts = text.split(" ").filter(Boolean).flatMap((word) => partsOf(view, word));
  // A bias that the model has not leaves its + behind.
  return parts.at(-1)?.text === "+" ? parts.slice(0, -1) : parts;
}

function partsOf(view, word) {
  if (word === "O*") {
    return view.result.heads.map(({O}, h) => ({symbol: "O", matrix: O, name: `O (head ${h})`, head: h, note: `head ${h}`}));
  }
  if (word.length > 1 && word.startsWith("+")) {
    const symbol = word.slice(1);
    return [{symbol, matrix: view.result.shared[symbol], name: `${symbol} (all heads)`, note: "all heads"}];
  }
  const transposed = word.endsWith("ᵀ");
  const named = transposed ? word.slice(0, -1) : word;
  const symbol = shownSymbol(view, named === "M" && view.attention.m === null ? "X" : named);
  if (!Object.hasOwn(TENSORS, symbol)) return [{text: word.replace(/_(rows|keys|heads|of)/, " $1")}];
  const matrix = matrixOf(view, symbol);
  return matrix ? [{symbol, transposed, matrix, name: symbol}] : [];
}

function workedCell(view, symbol, row, col) {
  const worked = explainCell(view.result, view.state.head, ruleSymbol(view, symbol), row, col);
  const highlights = worked.highlights.map((part) => ({...part, symbol: shownSymbol(view, part.symbol)}));
  return {...worked, highlights, formula: asShown(view, worked.formula)};
}
