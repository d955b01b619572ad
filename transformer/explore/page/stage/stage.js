"use strict";
// The stage: the chosen step in a formula, and its operands and its result as grids, as large as the stage has room for.

function renderStage(container, view) {
  const equation = make("div", "equation"), {scrollTop} = container;
  container.replaceChildren(stageHead(view), equation);
  const {symbol, cell} = view.state;
  const worked = cell && workedCell(view, symbol, cell.row, cell.col);
  drawEquation(equation, view, worked);
  if (container.dataset.symbol === symbol) container.scrollTop = scrollTop;
  else equation.querySelector(".part:last-of-type .labels.left .chosen")?.scrollIntoView({block: "nearest"});
  container.dataset.symbol = symbol;
  if (renderStage.observer) return;
  renderStage.observer = new ResizeObserver(([{contentRect: {width, height}}]) => { // of the box, whatever is in it
    const size = `${width} ${height}`;
    if (renderStage.size !== undefined && renderStage.size !== size) {
      renderStage(container, currentView());
      if (isTold()) showTargets(true);
    }
    renderStage.size = size;
  });
  renderStage.observer.observe(container);
}

/** The name of the step, its formulas, and the buttons to its neighbours. */
function stageHead(view) {
  const {label, name} = tensorsOf(view)[view.state.symbol];
  return build("div", {class: "stage-head"},
    build("h2", {}, build("span", {class: "symbol"}, ...withSubscripts(label)), " ", name), ...formulaLines(view),
    build("div", {class: "step-buttons"}, ...["ArrowLeft", "ArrowRight"].flatMap((key) => stepButton(view, key))));
}

/** Of a gradient, the step that it comes back through and what follows; of a tensor, how it is made and what comes back. */
function formulaLines(view) {
  const {forward, backward, replaced} = formulasOf(view, view.state.symbol);
  const line = (className, which, text) => build("span", {class: `formula ${className}`}, build("span", {class: "which"}, which), " ",
    build("span", {class: "formula-text"}, ...withSubscripts(text)));
  if (!isGradient(view.state.symbol)) return [line("forward", "forward", forward), ...(backward ? [line("back", "backward", backward)] : [])];
  return [line("forward", "forward", forward), line(replaced ? "backward replaced" : "backward", "so here", backward)];
}

/** A button to the step on the left or on the right; at the end of the row there is none. */
function stepButton(view, key) {
  const next = symbolAfter(key, view);
  if (next === tileOf(view, view.state.symbol)) return [];
  const onward = (key === "ArrowLeft") === isGradient(view.state.symbol), {label, name} = tensorsOf(view)[next];
  const text = key === "ArrowLeft" ? ["← ", ...withSubscripts(label)] : [...withSubscripts(label), " →"];
  return [build("button", {type: "button", class: onward ? "small onward" : "small", "data-key": `step:${key}`,
    "aria-label": `${onward ? "Next" : "Previous"} step, ${name}`, onclick: () => setState({symbol: next})}, ...text)];
}

/** The grids of the operands, each with the signs before it, and the result: a grid goes along with them into the next line. */
function drawEquation(container, view, worked) {
  const {symbol, cell} = view.state;
  const parts = [];
  let signs = [];
  for (const part of equationOf(view, symbol)) {
    if (part.text) signs.push(part.text);
    else {
      parts.push({...part, signs, highlight: highlightsOf(worked, part)});
      signs = [];
    }
  }
  const given = parts.length === 0;
  parts.push({symbol, matrix: matrixOf(view, symbol), name: symbol, signs: [...signs, ...(given ? [] : ["="])], note: given ? undefined : "the result",
    selected: cell, isResult: true});
  const drawn = parts.map((part) => ({...part, ...gridOptions(view, part.symbol), caption: captionOf(view, part)}));
  const letters = (part) => part.signs.join(" ").replace("_", "").length;
  const {clientWidth: width, clientHeight: height} = container;
  const sizes = fittedSizes(drawn.map((part) => ({matrix: part.matrix, rowLabels: part.rowLabels ?? indices(part.matrix.rows),
    colLabels: part.colLabels ?? indices(part.matrix.cols), sign: letters(part) * 0.6 * rem() + 10, title: 1.1 * widthOf(part.caption.textContent)})), {width, height});
  container.style.setProperty("--titles", sizes[0].titles);
  container.replaceChildren(...drawn.map((part, n) => build("div", {class: "part"},
    ...(part.signs.length ? [build("span", {class: "operator"}, ...withSubscripts(part.signs.join(" ")))] : []),
    gridOfPart(view, {...part, size: sizes[n]}))));
  if (cell) container.append(arrowsTo(container, drawn.map((part, n) => ({...part, size: sizes[n]}))));
}

/** From what made the chosen cell, in each operand on the result's line, to the name of its row. */
function arrowsTo(container, parts) {
  const {left, top} = container.getBoundingClientRect(), figures = [...container.querySelectorAll(".grid")];
  const target = figures.at(-1).querySelector(".labels.left .chosen > span").getBoundingClientRect();
  const [endX, endY] = [target.left - left - 5, target.top - top + target.height / 2];
  const lines = parts.flatMap(({highlight = [], matrix, size}, n) => highlight.map((part) => {
    const canvas = figures[n].querySelector("canvas").getBoundingClientRect(), [x, y, wide, high] = rectangleOf(part, matrix, size.width, size.height);
    const isColumn = high > size.height, [startX, startY] = [canvas.left - left + x + (isColumn ? wide / 2 : wide), canvas.top - top + y + (isColumn ? high : high / 2)];
    if (startX > endX) return [];
    const bend = isColumn ? `${startX} ${startY + 40}` : `${startX + 40} ${startY}`;
    return inSvg("path", {d: `M ${startX} ${startY} C ${bend} ${endX - 40} ${endY} ${endX} ${endY}`, "marker-end": "url(#arrow)"});
  }));
  return inSvg("svg", {class: "arrows", "aria-hidden": "true"}, inSvg("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8,
    orient: "auto"}, inSvg("path", {d: "M 0 0 L 8 4 L 0 8 z"})), ...lines);
}

/** A click on the result shows the sum behind a cell, one on an operand leads to the step that made it. */
function gridOfPart(view, {symbol, head, isResult, ...options}) {
  const hasStep = [...forwardSymbols(view), ...gradientSymbols(view)].includes(tileOf(view, symbol));
  const where = isResult ? {} : {symbol, ...(head === undefined ? {} : {head})};
  return grid(options.matrix, {...options,
    onCell: isResult || hasStep ? (row, col) => chooseCell({...where, cell: {row, col}}) : null});
}

/** Show the sum behind a cell, and how it comes about. */
function chooseCell(changes) {
  setState({...changes, panel: "step"});
  if (motionAllowed()) document.querySelector("#panel .player [data-play]")?.click();
}

/** The lines and cells of an operand that made the chosen cell. */
function highlightsOf(worked, part) {
  if (!worked) return [];
  const ofHead = (head) => head === undefined || part.head === undefined || head === part.head;
  return worked.highlights.filter(({symbol, head}) => symbol === part.symbol && ofHead(head));
}

/** Labels, kind and mask of the grid of a tensor. */
function gridOptions(view, symbol) {
  const {rowsAre, colsAre} = tensorsOf(view)[symbol];
  const labelsOf = (axis) => (axis === "one" ? [""] : view.labels[axis]);
  return {kind: paintOf(view, symbol), mask: maskFor(view, symbol), rowLabels: labelsOf(rowsAre), colLabels: labelsOf(colsAre),
    tokens: tokensOfTensor(view, symbol),
    told: isTold() ? partOfStory("text").textContent : ""};
}

/** A transpose is drawn as the tensor is, so that the tokens stay from top to bottom: only its name says it. */
function captionOf(view, {symbol, note = tensorsOf(view)[symbol].name, transposed}) {
  const label = labelOf(view, symbol), {rows, cols} = matrixOf(view, symbol);
  return build("span", {}, build("span", {class: "symbol"}, ...withSubscripts(label), transposed ? make("sup", "", "T") : null),
    ` ${transposed ? `${note}, drawn as ${label.replace("_", "")}` : note} ${rows}×${cols}`);
}
