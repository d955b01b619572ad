"use strict";
// The stage: the chosen step in a formula and in words, then its operands and its result as grids; below them the chosen
// cell of the result is written out by sum.js.

function renderStage(container, view) {
  const {symbol, cell} = view.state;
  const worked = cell && workedCell(view, symbol, cell.row, cell.col);
  const equation = make("div", "equation", ...equationElements(view, worked));
  const notes = [...numbersSwitch(view, matricesOf(view)), ...aboutTheRows(view)];
  container.replaceChildren(stageHead(view), make("div", "stage-formulas", ...formulaLines(view)),
    make("p", "in-words", ...withSubscripts(inWords(view, symbol))), equation,
    ...(worked ? [workedSum(view, worked)] : [stageHint(view)]),
    ...(notes.length ? [make("div", "stage-notes", ...notes)] : []), ...stageTools(view));
}

/** Of a gradient, the step that it comes back through and what follows; of a tensor, how it is made and what comes back. */
function formulaLines(view) {
  const {forward, backward, replaced} = formulasOf(view, view.state.symbol);
  const line = (className, which, text) => make("p", `formula ${className}`, make("span", "which", which),
    make("span", "formula-text", ...withSubscripts(text)));
  if (!isGradient(view.state.symbol)) return [line("forward", "forward", forward), ...(backward ? [line("back", "backward", backward)] : [])];
  return [line("forward", "forward", forward), line(replaced ? "backward replaced" : "backward", "so here", backward)];
}

/** The name of the step and the buttons to its neighbours. */
function stageHead(view) {
  const {symbol} = view.state;
  const {label, name} = tensorsOf(view)[symbol];
  const matrix = matrixOf(view, symbol);
  const steps = gradientSymbols(view), tensors = forwardSymbols(view);
  const place = isGradient(symbol) ? `backward pass, step ${stepNumber(view, tileOf(view, symbol))} of ${steps.length}`
    : `forward pass, ${tensors.indexOf(tileOf(view, symbol)) + 1} of ${tensors.length}`;
  const facts = `${place} · ${matrix.rows}×${matrix.cols} · ‖·‖ ${formatNumber(normOf(matrix))}${finiteDifference(view)}`;
  const title = make("h2", "", make("span", "symbol", ...withSubscripts(label)), name);
  return make("div", "stage-head", make("div", "", title, make("span", "place", facts)),
    make("div", "step-buttons", ...["ArrowLeft", "ArrowRight"].flatMap((key) => stepButton(view, key))));
}

/** How well the engine's finite differences agree with this gradient; what the reader has changed was not measured. */
function finiteDifference(view) {
  const {symbol} = view.state;
  const measured = view.attention?.checks[tensorOf(symbol)] ?? [];
  if (!isGradient(symbol) || measured.length === 0 || changesOf(view) !== "") return "";
  const worst = Math.max(...measured.map(({error}) => error));
  return ` · finite differences agree to ${formatNumber(worst, 2)}`;
}

/** A button to the step on the left or on the right; at the end of the row there is none. */
function stepButton(view, key) {
  const next = symbolAfter(key, view);
  if (next === tileOf(view, view.state.symbol)) return [];
  const onward = (key === "ArrowLeft") === isGradient(view.state.symbol);
  const number = isGradient(next) ? `${stepNumber(view, next)}: ` : "";
  const [before, after] = key === "ArrowLeft" ? ["← ", ""] : ["", " →"];
  const text = [before, number, ...withSubscripts(tensorsOf(view)[next].label), after];
  const button = make("button", onward ? "small onward" : "small", ...text);
  button.type = "button";
  button.dataset.key = `step:${key}`;
  button.setAttribute("aria-label", `${onward ? "Next" : "Previous"} step, ${number}${tensorsOf(view)[next].name}`);
  button.addEventListener("click", () => setState({symbol: next}));
  return [button];
}

/** Every matrix of the equation, the result last. */
const matricesOf = (view) => [...equationOf(view, view.state.symbol).flatMap(({matrix}) => matrix ?? []),
  matrixOf(view, view.state.symbol)];

/** The grids of the operands, the signs between them, and the result. */
function equationElements(view, worked) {
  const {symbol, cell} = view.state;
  const sizes = sizesOf(view, matricesOf(view));
  const elements = equationOf(view, symbol).flatMap((part) => {
    if (part.text) return [operator(...withSubscripts(part.text))];
    return [operandGrid(view, part, highlightsOf(worked, part), sizes)];
  });
  const given = elements.length === 0;
  if (!given) elements.push(operator("="));
  elements.push(grid(matrixOf(view, symbol), {
    ...gridOptions(view, symbol), ...sizes, name: symbol, selected: cell,
    caption: captionOf(view, symbol, given ? undefined : "the result"),
    onCell: (row, col) => chooseCell({cell: {row, col}}),
  }));
  return withTheirSigns(elements);
}

const operator = (...text) => make("span", "operator", ...text);

/** Each grid with the signs before it, which go along into the next line. */
function withTheirSigns(elements) {
  const parts = [];
  let signs = [];
  for (const element of elements) {
    signs.push(element);
    if (element.matches(".operator")) continue;
    parts.push(make("div", "part", ...signs));
    signs = [];
  }
  return parts;
}

function operandGrid(view, {symbol, transposed, matrix, name, head, note}, highlight, sizes) {
  const more = head === undefined ? {} : {head};
  // Where does this number come from? A click leads to the step that made it.
  const hasStep = [...forwardSymbols(view), ...gradientSymbols(view)].includes(tileOf(view, symbol));
  return grid(matrix, {
    ...gridOptions(view, symbol), ...sizes, name, highlight, caption: captionOf(view, symbol, note, transposed),
    ...(head === undefined ? {} : {numbers: false}), // all heads at once need the room
    onCell: hasStep ? (row, col) => chooseCell({...more, symbol, cell: {row, col}}) : null,
  });
}

/** Show the sum behind a cell, and how it comes about. */
function chooseCell(changes) {
  setState(changes);
  playSum(currentView());
}

/** The lines and cells of an operand that made the chosen cell. */
function highlightsOf(worked, part) {
  if (!worked) return [];
  const ofHead = (head) => head === undefined || part.head === undefined || head === part.head;
  return worked.highlights.filter(({symbol, head}) => symbol === part.symbol && ofHead(head));
}

/** Labels, kind, scale and mask of the grid of a tensor. */
function gridOptions(view, symbol) {
  const {rowsAre, colsAre} = tensorsOf(view)[symbol];
  const kind = paintOf(view, symbol);
  const labelsOf = (axis) => (axis === "one" ? [""] : view.labels[axis] ?? null);
  return {
    kind, mask: maskFor(view, symbol), rowLabels: labelsOf(rowsAre), colLabels: labelsOf(colsAre), tokens: tokensOfTensor(view, symbol),
  };
}

/** How a decoder's rows are named, by the example of the chosen one. */
function aboutTheRows(view) {
  const symbols = [view.state.symbol, ...equationOf(view, view.state.symbol).flatMap(({symbol}) => symbol ?? [])];
  const [read, written] = view.labels.query[view.state.row].split(" → ");
  if (!written || !symbols.some((symbol) => tensorsOf(view)[symbol].rowsAre === "query")) return [];
  return [make("p", "hint about-rows", `The row ${read} → ${written}: the decoder has read ${read} and is to write ${written}.`)];
}

/** A transpose is drawn as the tensor is, so that the tokens stay from top to bottom: only its name says it. */
function captionOf(view, symbol, note = tensorsOf(view)[symbol].name, transposed = false) {
  const label = labelOf(view, symbol);
  return make("span", "", make("span", "symbol", ...withSubscripts(label), ...(transposed ? [make("sup", "", "T")] : [])),
    transposed ? `${note}, drawn as ${label.replace("_", "")}` : note);
}

function stageHint(view) {
  const made = equationOf(view, view.state.symbol).some((part) => part.symbol);
  return make("p", "hint", made
    ? "Choose a cell of the result to see the sum behind it, or a cell of an operand to see where that number comes from."
    : "Nothing here makes this tensor: it is given. Its numbers are those of the model's run.");
}
