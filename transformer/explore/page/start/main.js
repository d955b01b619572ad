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
  renderControls(document.getElementById("selection"), view, verdict);
  renderStrip(document.getElementById("strip"), view, verdict.wrong);
  renderKey(document.getElementById("key"), view);
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

/** What does not change: the title, what is not in the page, the theme menu. */
function renderHead() {
  const element = (id) => document.getElementById(id);
  if (session) {
    element("title").textContent = "Backpropagation through a Transformer";
    element("intro").textContent = "A small trained model, alive in this page, reads a text and writes another. "
      + "Ask it for something else than it would write, and see which numbers the loss blames.";
    element("computed-here").textContent = "All numbers are computed here, in doubles, from the model’s weights.";
  } else {
    element("sentence").textContent = page.title;
    element("run-loss").textContent = page.loss === null ? "" : `loss of the model ${formatNumber(page.loss)}`;
    element("run-loss").title = page.lossName;
  }
  element("left-out").hidden = page.leftOut.length === 0;
  element("left-out").textContent = `Not in this page: ${page.leftOut.join(", ")}. `
    + "The command explain shows them if they are named, --attention NAME.";
  element("not-live").hidden = !page.notLive;
  element("not-live").textContent = `The model does not run in this page: ${page.notLive}.`;
  const theme = element("theme");
  theme.addEventListener("change", () => setState({theme: theme.value}));
  darkSystem.addEventListener("change", redraw);
}

/** A live page opens at the loss; another with the last layer's cross-attention, where the two sentences meet. */
function openingPlace() {
  if (session) return page.opens ? placeIndex(page.opens) : placeIndex("output");
  const kinds = page.attentions.map(({kind}) => kind);
  return kinds.includes("cross") ? kinds.lastIndexOf("cross") : kinds.length - 1;
}

function start() {
  page = decodePage(JSON.parse(document.getElementById("data").textContent));
  session = page.model && new Session(page.model);
  page.places = placesOf(page, currentRun());
  state.place = openingPlace();
  renderHead();
  if (session) startSentence();
  startSharing();
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
