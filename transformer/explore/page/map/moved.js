"use strict";
// How far a step moved the parameters of each place.
//
// How to use:
//   movements(places, before, after) -> Map path -> the norm of the change; before and after: Maps name -> Matrix

/** The place that a parameter belongs to: the one with the longest path that its name begins with. */
function placeOfParameter(name, paths) {
  if (name.startsWith("projection.")) return "output";
  const around = paths.filter((path) => name.startsWith(`${path}.`));
  return around.reduce((longest, path) => (path.length > longest.length ? path : longest), "");
}

function movements(places, before, after) {
  const paths = places.map(({path}) => path);
  const squares = new Map(paths.map((path) => [path, 0]));
  for (const [name, matrix] of after) {
    const path = placeOfParameter(name, paths), old = before.get(name).data;
    const square = matrix.data.reduce((sum, value, n) => sum + (value - old[n]) ** 2, 0);
    if (squares.has(path)) squares.set(path, squares.get(path) + square);
  }
  return new Map([...squares].map(([path, square]) => [path, Math.sqrt(square)]));
}
