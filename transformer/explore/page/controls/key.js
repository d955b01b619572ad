"use strict";
// The line below the strip that says what its signs and colours mean.

function renderKey(container, view) {
  const entry = (...parts) => make("span", "key-entry", ...parts);
  const coloured = (kind, text) => entry(colourBar(kind), text);
  const hatched = make("span", "legend-bar masked");
  container.replaceChildren(
    entry(make("span", "symbol", "dZ = ∂loss/∂Z"), "the gradient of the loss"),
    entry(make("span", "symbol", "‖·‖"), "root of the sum of squares"),
    coloured("weight", "weights, 0 to 1"), coloured("value", "values, − to +"), coloured("gradient", "gradients, − to +"),
    ...(hasMask(view) ? [entry(hatched, "masked")] : []));
}
