"use strict";
// Where the reader is in the model, whether the gradients there are right, and the way to the places before and behind.

function renderBreadcrumb(container, view, verdict) {
  const {place, state: {place: index}} = view;
  const {places} = view.page;
  const stack = place.layer === null ? place.side : `${place.side} layer ${place.layer + 1}`;
  const crumbs = make("ol", "crumbs", crumb("Model", "model", "The model, on the map", () => focusPlaceOnMap()));
  if (place.path !== "output") {
    const first = places.findIndex((other) => other.side === place.side && other.layer === place.layer);
    crumbs.append(crumb(stack, "stack", `${stack}, its first place`, () => setState({place: first})));
  }
  const here = make("li", "here", place.words);
  here.setAttribute("aria-current", "location");
  here.title = place.path;
  crumbs.append(here);
  container.replaceChildren(crumbs, verdict.measured ? verdictText(view, verdict) : "", make("div", "neighbours",
    neighbour(places[index - 1], index - 1, "before"), neighbour(places[index + 1], index + 1, "after")));
}

function crumb(text, key, description, onClick) {
  const button = make("button", "crumb", text);
  button.type = "button";
  button.dataset.key = `crumb:${key}`;
  button.setAttribute("aria-label", description);
  button.addEventListener("click", onClick);
  return make("li", "", button);
}

/** A button to the place before or after in the forward pass. */
function neighbour(place, index, which) {
  if (place === undefined) return "";
  const word = place.words.replace(/ of the .*/, "");
  const text = which === "before" ? `← ${word}` : `${word} →`;
  const button = make("button", "small", text);
  button.type = "button";
  button.dataset.key = `place:${which}`;
  button.setAttribute("aria-label", `${which === "before" ? "The place before" : "The place after"} in the forward pass, ${place.title}`);
  button.addEventListener("click", () => setState({place: index}));
  return button;
}

/** One level out: the chosen place on the map has the focus. */
function focusPlaceOnMap() {
  const map = document.getElementById("map");
  map.scrollIntoView({block: "nearest"});
  map.querySelector("[aria-current]")?.focus({preventScroll: true});
}
