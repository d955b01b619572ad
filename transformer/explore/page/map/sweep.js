"use strict";
// Motion on the map: the backward (or the forward) runs through the model place by place.
//
// How to use:
//   sweepMap("backward")         a promise, fulfilled when the sweep is over

const SWEEP_TIME = 2000; // milliseconds

/** Light the places up one by one, in the order of the run or against it; without motion all at once, for as long. */
async function sweepMap(direction) {
  const {picture, view: {page: {places}}} = drawnMap;
  const paths = places.map(({path}) => path);
  if (direction === "backward") paths.reverse();
  stopSweep(picture);
  picture.classList.add("sweeping", direction);
  const sweep = String(Number(picture.dataset.sweep ?? 0) + 1);
  picture.dataset.sweep = sweep; // a later sweep takes over from this one
  const goesOn = () => picture.isConnected && picture.dataset.sweep === sweep;
  if (!motionAllowed()) paths.forEach((path) => lightUp(picture, path, direction));
  const visit = (n) => motionAllowed() && arriveAt(picture, paths[n], direction);
  await inTime(SWEEP_TIME, paths.length, visit, goesOn);
  if (!goesOn()) return;
  stopSweep(picture);
  readOut(chosenPath());
}

function stopSweep(picture) {
  picture.classList.remove("sweeping", "forward", "backward");
  for (const lit of picture.querySelectorAll(".arrived, .here")) lit.classList.remove("arrived", "here");
}

/** The bar of a place grows, and the ways that lead on from it have the colour of what runs along them. */
function lightUp(picture, path, direction) {
  placeIn(picture, path).classList.add("arrived");
  const end = direction === "backward" ? "to" : "from";
  for (const way of picture.querySelectorAll(`.way[data-${end}="${path}"]`)) way.classList.add("arrived");
}

/** The sweep has come to a place: it glows, and beside the picture stand its numbers. */
function arriveAt(picture, path, direction) {
  picture.querySelector(".here")?.classList.remove("here");
  placeIn(picture, path).classList.add("here");
  lightUp(picture, path, direction);
  showOnMap(placeIn(picture, path));
  readOut(path);
}

/** Call visit(0) … visit(count − 1), spread evenly over a time; as long as goesOn() says so. */
function inTime(time, count, visit, goesOn) {
  return new Promise((done) => {
    let [begun, visited] = [null, 0];
    const frame = (now) => {
      begun ??= now;
      while (goesOn() && visited < count && (now - begun) / time >= visited / count) visit(visited++);
      if (goesOn() && now - begun < time) requestAnimationFrame(frame);
      else done();
    };
    requestAnimationFrame(frame);
  });
}

