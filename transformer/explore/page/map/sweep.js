"use strict";
// Motion on the map: the backward (or the forward) runs through the model, place by place.
//
// How to use:
//   sweepMap("backward", plays)   shows the buttons of its player, and with `plays` begins

const SWEEP_TIME = 3000; // milliseconds

/** Light the places up one by one, in the order of the run or against it. */
function sweepMap(direction, plays) {
  const {picture, container, view: {page: {places}}} = drawnMap;
  const paths = places.map(({path}) => path);
  if (direction === "backward") paths.reverse();
  const show = (count) => {
    const isOver = count >= paths.length;
    picture.classList.remove("sweeping", "forward", "backward");
    for (const lit of picture.querySelectorAll(".arrived, .here")) lit.classList.remove("arrived", "here");
    readOut(isOver ? chosenPath() : paths[Math.max(0, count - 1)]);
    if (isOver) return;
    picture.classList.add("sweeping", direction);
    for (const path of paths.slice(0, count)) lightUp(picture, path, direction);
    if (count === 0) return;
    placeIn(picture, paths[count - 1]).classList.add("here");
    showOnMap(placeIn(picture, paths[count - 1]));
  };
  const controls = player({name: direction, count: paths.length, show, time: SWEEP_TIME});
  container.querySelector(".map-player").replaceChildren(controls);
  show(paths.length);
  if (plays) controls.querySelector("[data-play]").click();
}

/** The bar of a place grows, and the ways that lead on from it have the colour of what runs along them. */
function lightUp(picture, path, direction) {
  placeIn(picture, path).classList.add("arrived");
  const end = direction === "backward" ? "to" : "from";
  for (const way of picture.querySelectorAll(`.way[data-${end}="${path}"]`)) way.classList.add("arrived");
}
