"use strict";
// Start: decode the data, draw, and listen. `window.explorer` is the same page for the console.

function redraw() {
  const key = focusedKey();
  const view = currentView();
  const verdict = verdictOf(view);
  showTip(null);
  renderControls(document.getElementById("selection"), view, verdict);
  keepScroll(document.getElementById("strip"), (container) => renderStrip(container, view, verdict.wrong));
  renderKey(document.getElementById("key"), view);
  renderStage(document.getElementById("stage"), view);
  renderTabs(view);
  restoreFocus(key);
  showCurrentTile();
  sayCell(view);
}

/** For a screen reader: the chosen cell and its number. */
function sayCell(view) {
  const {symbol, cell} = view.state;
  const said = document.getElementById("said");
  if (!cell) {
    said.textContent = "";
    return;
  }
  const value = formatNumber(matrixOf(view, symbol).at(cell.row, cell.col), 5);
  said.textContent = `${symbol}[${cell.row}, ${cell.col}] is ${value}, written out below its grid`;
}

/** Redraw what scrolls sideways without losing its place. */
function keepScroll(container, draw) {
  const {scrollLeft} = container;
  draw(container);
  container.scrollLeft = scrollLeft;
}

/** On a narrow screen, bring the chosen tile into the part of the strip that is seen. */
function showCurrentTile() {
  const strip = document.getElementById("strip");
  const chosen = strip.querySelector("[aria-current]");
  if (!chosen || strip.scrollWidth <= strip.clientWidth) return;
  const left = chosen.getBoundingClientRect().left - strip.getBoundingClientRect().left + strip.scrollLeft;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  strip.scrollTo({left: left - (strip.clientWidth - chosen.offsetWidth) / 2, behavior});
}

/** The tabs of the panels, and the open one. */
function renderTabs(view) {
  const tabs = document.getElementById("tabs"), container = document.getElementById("panel");
  const panels = panelsOf(view);
  document.getElementById("panels").hidden = panels.length === 0;
  const open = panels.find(({id}) => id === view.state.panel) ?? panels[0];
  tabs.replaceChildren(...panels.map((panel) => tabOf(panel, panel === open)));
  if (!open) return;
  container.dataset.panel = open.id;
  container.setAttribute("aria-labelledby", `tab-${open.id}`);
  const fresh = make("div", `panel-body ${open.id}`);
  open.render(fresh, view);
  container.replaceChildren(fresh);
}

function tabOf({id, title}, selected) {
  const tab = make("button", "tab", title);
  Object.assign(tab, {type: "button", id: `tab-${id}`, tabIndex: selected ? 0 : -1});
  tab.dataset.key = `tab:${id}`;
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", "panel");
  tab.setAttribute("aria-selected", String(selected));
  tab.addEventListener("click", () => setState({panel: id}));
  tab.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const panels = panelsOf(currentView());
    const place = panels.findIndex((panel) => panel.id === id);
    const next = panels[(place + step + panels.length) % panels.length];
    setState({panel: next.id});
    document.getElementById(`tab-${next.id}`).focus();
  });
  return tab;
}

/** What does not change: the sentence, the loss, what is not in the page, the theme menu. */
function renderHead() {
  document.getElementById("sentence").textContent = page.title;
  document.getElementById("loss").textContent = page.loss === null ? "" : `loss of the model ${formatNumber(page.loss)}`;
  document.getElementById("loss").title = page.lossName;
  const leftOut = document.getElementById("left-out");
  leftOut.hidden = page.leftOut.length === 0;
  leftOut.textContent = `Not in this page: ${page.leftOut.join(", ")}. `
    + "The command explain shows them if they are named, --attention NAME.";
  const theme = document.getElementById("theme");
  theme.addEventListener("change", () => setState({theme: theme.value}));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

/** First the last layer's cross-attention, where the two sentences meet; without one, the last attention. */
function openingPlace() {
  const kinds = page.attentions.map(({kind}) => kind);
  return {attention: kinds.includes("cross") ? kinds.lastIndexOf("cross") : kinds.length - 1};
}

/** The query whose scores get most gradient, and the largest number on the stage. */
function telling() {
  const {head, state: {symbol}} = currentView();
  const sizes = norms(head.dS), matrix = matrixOf(currentView(), symbol);
  const place = matrix.data.reduce((best, x, n) => (Math.abs(x) > Math.abs(matrix.data[best]) ? n : best), 0);
  return {row: sizes.indexOf(Math.max(...sizes)), cell: {row: Math.floor(place / matrix.cols), col: place % matrix.cols}};
}

function start() {
  page = decodePage(JSON.parse(document.getElementById("data").textContent));
  renderHead();
  listenToKeys();
  window.explorer = {
    state, setState, page,
    matrix: (symbol) => matrixOf(currentView(), symbol).toNested(),
    value: (symbol, row, col) => matrixOf(currentView(), symbol).at(row, col),
    explainCell: (symbol, row, col) => explainCell(currentResult(), state.head, symbol, row, col),
    checks: () => checks(page, state.attention, state.item, optionsOf(state)),
    identities: () => identities(currentResult(), state.head),
    nudge: (cell, epsilon) =>
      nudge(page, state.attention, state.item, optionsOf(state), {head: state.head, ...cell}, epsilon),
  };
  Object.assign(state, openingPlace(), readHash());
  keepInRange();
  setState(telling());
  addEventListener("hashchange", () => setState(readHash())); // an address that a reader typed, or came back to
}

start();
