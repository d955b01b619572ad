"use strict";
// The stage: the chosen step with its operands and its result as grids, the formula of the forward pass above them and
// that of the gradient below; a chosen cell of the result is written out by stage_sum.js.

function renderStage(container, view) {
  const {symbol, cell} = view.state;
  const {forward, backward, replaced} = formulasOf(view, symbol);
  const worked = cell && workedCell(view, symbol, cell.row, cell.col);
  const equation = make("div", "equation", ...equationElements(view, worked));
  container.replaceChildren(stageHead(view), formulaLine("forward", "forward:", forward), ...addingSlider(view), equation,
    ...numbersSwitch(view, matricesOf(view)), ...aboutTheRows(view), formulaLine(replaced ? "backward replaced" : "backward", "so here:", backward),
    make("p", "in-words", ...withSubscripts(inWords(view, symbol))),
    ...(worked ? [workedSum(view, worked)] : [stageHint(view)]), ...stageTools(view));
}

/** The name of the step and the buttons to its neighbours. */
function stageHead(view) {
  const {symbol} = view.state;
  const {label, name} = TENSORS[symbol];
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
function finiteDifference({attention, result, state: {symbol, scaling, masking}}) {
  const measured = attention.checks[tensorOf(symbol)] ?? [];
  if (!isGradient(symbol) || measured.length === 0 || !scaling || !masking || result.edit || result.broken) return "";
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
  const text = [before, number, ...withSubscripts(TENSORS[next].label), after];
  const button = make("button", onward ? "small onward" : "small", ...text);
  button.type = "button";
  button.dataset.key = `step:${key}`;
  button.setAttribute("aria-label", `${onward ? "Next" : "Previous"} step, ${number}${TENSORS[next].name}`);
  button.addEventListener("click", () => setState({symbol: next}));
  return [button];
}

const formulaLine = (className, which, text) =>
  make("p", `formula ${className}`, make("span", "which", which), " ", make("span", "formula-text", ...withSubscripts(text)));

/** Every matrix of the equation, the result last. */
const matricesOf = (view) => [...equationOf(view, view.state.symbol).flatMap(({matrix}) => matrix ?? []),
  matrixOf(view, view.state.symbol)];

/** The grids of the operands, the signs between them, and the result. */
function equationElements(view, worked) {
  const {symbol, cell} = view.state;
  const adding = addingOf(view);
  const sizes = sizesOf(view, [...matricesOf(view), ...(adding ? [adding.added] : [])]);
  const elements = equationOf(view, symbol).flatMap((part) => {
    if (part.text) return [make("span", "operator", ...withSubscripts(part.text))];
    const highlight = adding ? addedRow(adding, part) : highlightsOf(worked, part);
    return [withTranspose(operandGrid(view, part, highlight, sizes), part.transposed)];
  });
  const given = elements.length === 0;
  if (!given) elements.push(make("span", "operator", "="));
  if (adding) elements.push(addedGrid(view, adding, sizes), make("span", "operator", "→"));
  elements.push(grid(adding ? adding.sum : matrixOf(view, symbol), {
    ...gridOptions(view, symbol), ...sizes, name: symbol, selected: cell, ...(adding ? {scale: adding.scale} : {}),
    caption: adding ? captionOf(view, symbol, `sum of the first ${adding.count} of ${adding.total}`)
      : captionOf(view, symbol, given ? undefined : "the result"),
    onCell: (row, col) => chooseCell(symbol, row, col),
  }));
  return elements;
}

/** A transpose is marked beside the grid, so that the queries can stay from top to bottom. */
const withTranspose = (element, transposed) =>
  (transposed ? make("div", "transposed", element, make("span", "operator", "ᵀ")) : element);

function operandGrid(view, {symbol, matrix, name, head, note}, highlight, sizes) {
  const more = head === undefined ? {} : {head};
  // Where does this number come from? A click leads to the step that made it.
  const hasStep = [...forwardSymbols(view), ...gradientSymbols(view)].includes(tileOf(view, symbol));
  const to = symbol === "G" ? "dY" : symbol;
  return grid(matrix, {
    ...gridOptions(view, symbol), ...sizes, name, highlight, caption: captionOf(view, symbol, note),
    ...(head === undefined ? {} : {numbers: false}), // all heads at once need the room
    onCell: hasStep ? (row, col) => chooseCell(to, row, col, more) : null,
  });
}

/** Show the sum behind a cell; its row, if that is a query, is also the row of the softmax panel. */
function chooseCell(symbol, row, col, more = {}) {
  const query = TENSORS[symbol].rowsAre === "query" ? {row} : {};
  setState({...more, symbol, cell: {row, col}, ...query});
}

/** The lines and cells of an operand that made the chosen cell. */
function highlightsOf(worked, part) {
  if (!worked) return [];
  const ofHead = (head) => head === undefined || part.head === undefined || head === part.head;
  return worked.highlights.filter(({symbol, head}) => symbol === part.symbol && ofHead(head));
}

/** Labels, kind, scale and mask of the grid of a tensor. */
function gridOptions(view, symbol) {
  const {rowsAre, colsAre} = TENSORS[symbol];
  const kind = kindOf(symbol);
  const labelsOf = (axis) => (axis === "one" ? [""] : view.labels[axis] ?? null);
  return {
    kind, mask: maskFor(view, symbol), rowLabels: labelsOf(rowsAre), colLabels: labelsOf(colsAre),
    rowTitles: rowsAre === "query" ? view.labels.next?.map((_, row) => readAndWritten(view, row)) : null,
    ...(kind === "gradient" && view.commonScale !== null ? {scale: view.commonScale} : {}),
  };
}

/** A decoder's query has the name of the token that was read there; the loss is about the one that comes next. */
const readAndWritten = ({labels: {query, next}}, row) => (
  `the decoder read “${query[row]}”${next[row] && ` and is to write “${next[row]}”`}`);

function aboutTheRows(view) {
  const symbols = [view.state.symbol, ...equationOf(view, view.state.symbol).flatMap(({symbol}) => symbol ?? [])];
  if (!view.labels.next?.some(Boolean) || !symbols.some((symbol) => TENSORS[symbol].rowsAre === "query")) return [];
  const row = TENSORS[view.state.symbol].rowsAre === "query" && view.state.cell ? view.state.cell.row : 0;
  return [make("p", "hint about-rows", `The rows are queries: at row ${row} ${readAndWritten(view, row)}.`)];
}

const captionOf = (view, symbol, note = TENSORS[symbol].name) =>
  make("span", "", make("span", "symbol", ...withSubscripts(labelOf(view, symbol))), note);

function stageHint(view) {
  const made = equationOf(view, view.state.symbol).some((part) => part.symbol);
  return make("p", "hint", made
    ? "Choose a cell of the result to see the sum behind it, or a cell of an operand to see where that number comes from."
    : "Nothing here makes this tensor: it is given. Its numbers are those of the model's run.");
}
