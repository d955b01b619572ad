"use strict";
// The view of the chosen step: what it says in words, the chosen cell's sum, and what can be done with that cell.

function renderStep(container, view) {
  const {symbol, cell} = view.state, matrix = matrixOf(view, symbol);
  const passes = isGradient(symbol) ? ["backward", gradientSymbols(view)] : ["forward", forwardSymbols(view)];
  const step = `Step ${passes[1].indexOf(tileOf(view, symbol)) + 1} of ${passes[1].length} of the ${passes[0]} pass`;
  container.append(
    ...(view.state.story === null ? [build("p", {class: "in-words"}, ...withSubscripts(inWords(view, symbol)))] : []),
    ...(cell ? [workedSum(view), ...stageTools(view)] : []),
    build("p", {class: "hint facts"}, `${step} here · ‖·‖ ${formatNumber(normOf(matrix))}${finiteDifference(view)}`), ...aboutTheRows(view));
}

/** How well the engine's finite differences agree with this gradient; what the reader has changed was not measured. */
function finiteDifference(view) {
  const {symbol} = view.state;
  const measured = view.attention?.checks[tensorOf(symbol)] ?? [];
  if (!isGradient(symbol) || measured.length === 0 || isChanged(view)) return "";
  return ` · finite differences agree to ${formatNumber(Math.max(...measured.map(({error}) => error)), 2)}`;
}

/** How a decoder's rows are named, by the example of the chosen one. */
function aboutTheRows(view) {
  const symbols = [view.state.symbol, ...equationOf(view, view.state.symbol).flatMap(({symbol}) => symbol ?? [])];
  const [read, written] = view.labels.query[view.state.row].split(" → ");
  if (!written || !symbols.some((symbol) => tensorsOf(view)[symbol].rowsAre === "query")) return [];
  return [build("p", {class: "hint"}, `The row ${read} → ${written}: the decoder has read ${read} and is to write ${written}.`)];
}

PANELS.push({id: "step", title: "Step", render: renderStep});
