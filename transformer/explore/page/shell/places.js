"use strict";
// The places of the model that a reader can enter, in the order in which the forward run passes them.
//
// How to use:
//   placesOf(page, run) -> [{path, kind, title, words, side, layer, attention}]; they become page.places
//       path       as in the module tree: "decoder.layers.1.cross_attention"
//       kind       of places/kinds.js
//       title      "decoder layer 2: cross-attention"      words  "cross-attention", its last part
//       side       "encoder" or "decoder"                  layer  counted from 0, or null
//       attention  index into page.attentions, or null
//   placeIndex(path) -> its index in page.places, −1 if there is none

function placesOf({attentions}, run) {
  return run.order.map((path, n) => {
    const index = attentions.findIndex(({name}) => name === path);
    return {path, kind: run.kinds[n], ...namesOf(path), attention: index < 0 ? null : index};
  });
}

const placeIndex = (path) => page.places.findIndex((place) => place.path === path);

const WORDS_OF_SUBLAYERS = {
  embedding: "embedding", norm: "final norm", self_attention: "self-attention", cross_attention: "cross-attention",
  feed_forward: "feed-forward",
};

/** "decoder.layers.1.self_attention_residual.norm" -> {title: "decoder layer 2: norm of the self-attention", …} */
function namesOf(path) {
  if (path === "output") return {side: "decoder", layer: null, words: "output and loss", title: "output and loss"};
  const [side, ...rest] = path.split(".");
  const layer = rest[0] === "layers" ? Number(rest[1]) : null;
  const words = sublayerWords(layer === null ? rest : rest.slice(2));
  return {side, layer, words, title: layer === null ? `${side}: ${words}` : `${side} layer ${layer + 1}: ${words}`};
}

function sublayerWords([module, part]) {
  const sublayer = module.replace(/_residual$/, "");
  const words = WORDS_OF_SUBLAYERS[sublayer] ?? sublayer;
  if (module === sublayer) return words;
  return part === "norm" ? `norm of the ${words}` : `addition of the ${words}`;
}
