"use strict";
// Start: decode the data, draw, and listen. `window.explorer` is the same page for the console.

function redraw() {
  const key = focusedKey();
  const view = currentView();
  const verdict = verdictOf(view);
  showTip(null);
  renderSentence(document.getElementById("texts"), view);
  renderMap(document.getElementById("map"), view);
  renderPlace(document.getElementById("place"), view, verdict);
  renderStrip(document.getElementById("strip"), view, verdict.wrong);
  renderStory(document.getElementById("story"), view);
  renderStage(document.getElementById("stage"), view);
  renderTabs(view);
  sayCell(view);
  keepHighlight();
  if (isTold()) showTargets(false);
  restoreFocus(key);
  document.querySelector("#strip [aria-current]").scrollIntoView({block: "nearest", inline: "nearest"});
  measureWhenIdle(view, showMeasured);
}

/** What has been measured meanwhile stands beside the place and among the checks; nothing else has changed. */
function showMeasured() {
  const key = focusedKey();
  const view = currentView();
  renderPlace(document.getElementById("place"), view, verdictOf(view));
  renderTabs(view);
  if (isTold()) showTargets(false); // what the story points at has been drawn anew
  restoreFocus(key);
}

/** For a screen reader: the chosen cell and its number. */
function sayCell(view) {
  const {symbol, cell} = view.state;
  if (isStepping()) return; // too fast to be said
  document.getElementById("said").textContent = cell
    ? `${symbol}[${cell.row}, ${cell.col}] is ${formatNumber(matrixOf(view, symbol).at(cell.row, cell.col), 5)}, written out beside the stage` : "";
}

/** The tabs of the panels, and the open one. */
function renderTabs(view) {
  const tabs = document.getElementById("tabs"), container = document.getElementById("panel");
  const panels = panelsOf(view);
  const open = panels.find(({id}) => id === view.state.panel) ?? panels[0];
  tabs.replaceChildren(...panels.map((panel) => tabOf(panel, panel === open)));
  const {scrollTop} = container, isSame = container.dataset.panel === open.id;
  container.dataset.panel = open.id;
  container.setAttribute("aria-labelledby", `tab-${open.id}`);
  container.replaceChildren(...notesOn(view));
  open.render(container, view);
  container.scrollTop = isSame ? scrollTop : 0;
}

function tabOf({id, title}, selected) {
  const press = (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const panels = panelsOf(currentView()), place = panels.findIndex((panel) => panel.id === id);
    const next = panels[(place + step + panels.length) % panels.length];
    setState({panel: next.id});
    document.getElementById(`tab-${next.id}`).focus();
  };
  return build("button", {type: "button", class: "tab", id: `tab-${id}`, tabindex: selected ? "0" : "-1", "data-key": `tab:${id}`, role: "tab",
    "aria-controls": "panel", "aria-selected": String(selected), onclick: () => setState({panel: id}), onkeydown: press}, title);
}

/** The menus of the theme and of the size of the text. */
function listenToSettings() {
  for (const name of ["theme", "text"]) {
    const menu = document.getElementById(name);
    menu.addEventListener("change", () => {
      setState({[name]: menu.value});
      drawMap(); // in letters of another size
    });
  }
  darkSystem.addEventListener("change", redraw);
}

const LARGE_MODEL = 500_000; // parameters: with more, a run takes so long that the window would be felt to wait

/** In a worker, of all scripts that need no document; in this thread where the browser makes none. */
function placeToCompute(script) {
  const failed = () => { session.compute = HERE; };
  try {
    return session.size > LARGE_MODEL ? remote(script.split("// draw/")[0], failed) : HERE;
  } catch {
    return HERE;
  }
}

async function start() {
  page = JSON.parse(document.getElementById("data").textContent, decoded);
  session = new Session(page.model);
  session.compute = placeToCompute(document.currentScript.textContent);
  page.places = placesOf(page, await settled(() => currentRun()));
  state.place = placeIndex(page.opens ?? "output");
  listenToSettings();
  startSentence();
  listenToKeys();
  listenToZoom();
  listenToTokens();
  window.explorer = {
    state, setState, page, session,
    matrix: (symbol) => matrixOf(currentView(), symbol).toNested(),
    value: (symbol, row, col) => matrixOf(currentView(), symbol).at(row, col),
    explainCell: (symbol, row, col) => explainCell(currentResult(), state.head, symbol, row, col),
    checks: () => settled(() => checks(currentResult())),
    identities: () => identities(currentResult(), state.head),
    nudge: (cell, epsilon) => settled(() => nudge(currentResult(), {head: state.head, ...cell}, epsilon)),
  };
  const followAddress = () => settled(() => setState(readAddress()));
  followAddress();
  addEventListener("hashchange", followAddress); // an address that a reader typed, or came back to
}

start();
