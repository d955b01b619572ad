"use strict";
// Start: decode the data, draw, and listen. `window.explorer` is the same page for the console.

function redraw() {
  const key = focusedKey();
  const view = currentView();
  const verdict = verdictOf(view);
  const {scrollLeft} = document.getElementById("strip"); // what is read before anything changes costs no layout
  measureStage();
  showTip(null);
  renderSentence(document.getElementById("texts"), view);
  renderStepForm(document.getElementById("steps"), view);
  renderMap(document.getElementById("map"), view);
  renderBreadcrumb(document.getElementById("breadcrumb"), view, verdict);
  renderControls(document.getElementById("selection"), view);
  renderStrip(document.getElementById("strip"), view, verdict.wrong);
  renderStage(document.getElementById("stage"), view);
  renderTabs(view);
  sayCell(view);
  keepHighlight();
  // From here on the page is asked for its layout: all that changes it, but for the frames of a story, stands above.
  renderStory(document.getElementById("story"), view);
  restoreFocus(key);
  document.getElementById("strip").scrollLeft = scrollLeft;
  showCurrentTile();
  showChosenCell();
  measureWhenIdle(view, showMeasured);
}

/** What has been measured meanwhile stands in the breadcrumb and among the checks; nothing else has changed. */
function showMeasured() {
  const key = focusedKey();
  const view = currentView();
  renderBreadcrumb(document.getElementById("breadcrumb"), view, verdictOf(view));
  renderTabs(view);
  if (told.subject !== null) showTargets(false); // what the story points at in the panel has been drawn anew
  restoreFocus(key);
}

/** For a screen reader: the chosen cell and its number. */
function sayCell(view) {
  const {symbol, cell} = view.state;
  const said = document.getElementById("said");
  if (isStepping()) return; // too fast to be said
  if (!cell) {
    said.textContent = "";
    return;
  }
  const value = formatNumber(matrixOf(view, symbol).at(cell.row, cell.col), 5);
  said.textContent = `${symbol}[${cell.row}, ${cell.col}] is ${value}, written out below its grid`;
}

/** On a narrow screen, bring the chosen tile into the part of the strip that is seen. */
function showCurrentTile() {
  const strip = document.getElementById("strip");
  const chosen = strip.querySelector("[aria-current]");
  if (!chosen || strip.scrollWidth <= strip.clientWidth) return;
  const left = chosen.getBoundingClientRect().left - strip.getBoundingClientRect().left + strip.scrollLeft;
  strip.scrollTo({left: left - (strip.clientWidth - chosen.offsetWidth) / 2, behavior: scrolling()});
}

/** On a narrow screen, bring the chosen cell into the part of its grid that is seen. */
function showChosenCell() {
  const cell = document.querySelector("#stage .cell.selected");
  const scroller = cell?.closest(".grid-scroll");
  if (!scroller || scroller.scrollWidth <= scroller.clientWidth) return;
  const left = cell.getBoundingClientRect().left - scroller.getBoundingClientRect().left + scroller.scrollLeft;
  scroller.scrollLeft = left - (scroller.clientWidth - cell.offsetWidth) / 2;
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

/** The theme menu. */
function listenToTheme() {
  const theme = document.getElementById("theme");
  theme.addEventListener("change", () => setState({theme: theme.value}));
  darkSystem.addEventListener("change", redraw);
}

function start() {
  page = decodePage(JSON.parse(document.getElementById("data").textContent));
  session = new Session(page.model);
  page.places = placesOf(page, currentRun());
  state.place = placeIndex(page.opens ?? "output");
  listenToTheme();
  startSentence();
  listenToKeys();
  listenToZoom();
  listenToTokens();
  window.explorer = {
    state, setState, page, session,
    matrix: (symbol) => matrixOf(currentView(), symbol).toNested(),
    value: (symbol, row, col) => matrixOf(currentView(), symbol).at(row, col),
    explainCell: (symbol, row, col) => explainCell(currentResult(), state.head, symbol, row, col),
    checks: () => checks(currentResult()),
    identities: () => identities(currentResult(), state.head),
    nudge: (cell, epsilon) => nudge(currentResult(), {head: state.head, ...cell}, epsilon),
  };
  setState(readAddress());
  addEventListener("hashchange", () => setState(readAddress())); // an address that a reader typed, or came back to
}

start();
