"use strict";
// The map: the whole model in one picture, with the size of activation and gradient at each place. A click enters a place.
//
// How to use:
//   renderMap(container, view)   draws the map, or brings the one that stands there up to date

const ROOM_FOR_HEAD = 270; // right of the encoder's row: with less room the words stand above the picture
const LETTER = 14; // pixels: the size of the text for which the layout's numbers are
const drawnMap = {container: null, view: null, width: 0, layout: null, picture: null, run: null, chosen: null};

function renderMap(container, view) {
  const first = drawnMap.container !== container;
  Object.assign(drawnMap, {container, view});
  if (first) {
    container.replaceChildren(mapHead(), build("div", {class: "map-scroll"}));
    new ResizeObserver(([{contentRect: {width}}]) => width !== drawnMap.width && drawMap()).observe(container.querySelector(".map-scroll"));
    drawMap();
  }
  updateMap();
}

/** Draw the picture anew, for the room and the size of the text that there are. */
function drawMap() {
  const {container, view} = drawnMap;
  const box = container.querySelector(".map-scroll"), width = box.clientWidth, scale = rem() / LETTER;
  const layout = mapLayout(view.page.places, width / scale, innerWidth < 900);
  const picture = listenOnMap(mapPicture(layout, view.page.places));
  picture.setAttribute("width", layout.width * scale);
  picture.setAttribute("height", layout.height * scale);
  box.replaceChildren(picture);
  const room = width - layout.rows[0].end * scale;
  container.classList.toggle("with-room", room > ROOM_FOR_HEAD * scale);
  container.style.setProperty("--room", `${room - 20}px`);
  Object.assign(drawnMap, {width, layout, picture, run: null, chosen: null});
  updateMap();
}

/** The numbers of the run, and the mark of the chosen place. */
function updateMap() {
  const {view, picture, run} = drawnMap;
  if (picture === null) return;
  if (run !== view.run) {
    drawnMap.run = view.run;
    fillBars();
  }
  const chosen = chosenPath();
  const moved = drawnMap.chosen !== chosen;
  drawnMap.chosen = chosen;
  for (const group of picture.querySelectorAll(".place")) {
    const isChosen = group.dataset.place === chosen;
    group.tabIndex = isChosen ? 0 : -1;
    if (isChosen) group.setAttribute("aria-current", "location");
    else group.removeAttribute("aria-current");
  }
  if (moved) {
    showOnMap(placeIn(picture, chosen));
    openInto(placeIn(picture, chosen).querySelector(".shape").getBoundingClientRect(), document.getElementById("stage"));
  }
  readOut(chosen);
}

const chosenPath = () => drawnMap.view.page.places[drawnMap.view.state.place].path;

/** The bars, each kind on a scale of its own from 0 to its largest norm, and what a screen reader says of each place. */
function fillBars() {
  const {view: {page: {places}}, picture, run: {norms, loss}, container} = drawnMap;
  const longest = (which) => {
    const most = Math.max(...places.map(({path}) => norms.get(path)[which]));
    for (const {path} of places) setBar(picture, path, which, norms.get(path)[which], most);
    return formatNumber(most, 3);
  };
  container.querySelector(".map-numbers").title = `The bars are norms, up to ${longest("value")} and ${longest("gradient")}`;
  const second = placeIn(picture, "output").querySelector(".second");
  if (second) second.textContent = formatNumber(loss, 2);
  for (const {path, title} of places) {
    const {value, gradient} = norms.get(path);
    placeIn(picture, path).setAttribute("aria-label",
      `${title}: norm of the activation ${formatNumber(value, 3)}, of the gradient ${formatNumber(gradient, 3)}`);
  }
}

/** Beside the picture: the place that is pointed at, else the chosen one, with its numbers; they tell the colours, too. */
function mapHead() {
  const number = (which, name) => build("span", {},
    build("span", {class: `swatch ${which}`}), ` ${name} `, build("b", {class: `norm ${which}`}));
  const sweep = (direction, text) => build("button", {class: "small", type: "button", "data-key": `map:${direction}`,
    onclick: () => sweepMap(direction, motionAllowed())}, text);
  return build("div", {class: "map-head"},
    build("p", {class: "map-place"}, build("b", {}), " ", build("span", {})),
    build("p", {class: "map-numbers"}, number("value", "activation"), number("gradient", "gradient")),
    build("p", {class: "map-sweeps"}, sweep("forward", "forward →"), sweep("backward", "← backward"), build("span", {class: "map-player"})));
}

function readOut(path) {
  const {view, run} = drawnMap;
  const {words, side, layer} = view.page.places.find((place) => place.path === path);
  sayAtMap(words, layer === null ? `· ${side}` : `· ${side}, layer ${layer + 1}`);
  for (const which of ["value", "gradient"]) {
    const norm = run.norms.get(path)[which];
    const element = drawnMap.container.querySelector(`.norm.${which}`);
    element.textContent = formatNumber(norm, 3);
    element.dataset.value = norm;
  }
}

function sayAtMap(strong, rest) {
  const [first, second] = drawnMap.container.querySelector(".map-place").children;
  [first.textContent, second.textContent] = [strong, rest];
}

/** Where the picture is larger than its box, bring a place into the part that is seen. */
function showOnMap(group) {
  const box = drawnMap.container.querySelector(".map-scroll"), scale = rem() / LETTER;
  box.scrollLeft = drawnMap.layout.spots.get(group.dataset.place).x * scale - box.clientWidth / 2;
}

function listenOnMap(picture) {
  const placeOf = (event) => event.target.closest(".place");
  const point = (event) => readOut(placeOf(event)?.dataset.place ?? chosenPath());
  const leave = () => readOut(placeIn(picture, document.activeElement?.dataset?.place)?.dataset.place ?? chosenPath());
  picture.addEventListener("pointerover", point);
  picture.addEventListener("pointerleave", leave);
  picture.addEventListener("focusin", point);
  picture.addEventListener("focusout", leave);
  picture.addEventListener("click", (event) => placeOf(event) && enterPlace(placeOf(event)));
  picture.addEventListener("keydown", (event) => placeOf(event) && pressOnMap(event, placeOf(event)));
  return picture;
}

/** The keys on a place: Enter goes in, the arrows lead to the others. */
function pressOnMap(event, group) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    enterPlace(group);
    return;
  }
  const path = pathAfter(event.key, group.dataset.place);
  if (path === null) return;
  event.preventDefault();
  const next = placeIn(drawnMap.picture, path);
  next.focus({preventScroll: true});
  showOnMap(next);
}

/** The place that an arrow leads to: along the row, or to the nearest one of the other row; null for other keys. */
function pathAfter(key, path) {
  const spots = [...drawnMap.layout.spots.values()];
  const here = drawnMap.layout.spots.get(path);
  if (key === "ArrowUp" || key === "ArrowDown") {
    const others = spots.filter(({row}) => row === here.row + (key === "ArrowUp" ? -1 : 1));
    const distance = ({x}) => Math.abs(x - here.x);
    return others.reduce((best, spot) => (distance(spot) < distance(best) ? spot : best), others[0] ?? here).path;
  }
  const row = spots.filter((spot) => spot.row === here.row);
  const next = {ArrowLeft: row.indexOf(here) - 1, ArrowRight: row.indexOf(here) + 1, Home: 0, End: row.length - 1}[key];
  return next === undefined ? null : row[Math.max(0, Math.min(row.length - 1, next))].path;
}

/** Choose the place: its box opens into the stage, and the focus goes to its step. */
function enterPlace(group) {
  setState({place: drawnMap.view.page.places.findIndex(({path}) => path === group.dataset.place)});
  document.querySelector("#strip .tile[aria-current]").focus();
}
