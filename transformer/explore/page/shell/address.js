"use strict";
// The reader's choices in the address, so that a link or a reload comes back to them.
//
// How to use:
//   writeAddress()   puts what differs from the defaults after the # of the address
//   readAddress() -> the changes of the state that the address asks for; what it does not understand is left out. The texts of
//                    the sentences that are not the chosen one are no part of the state: the session has them then

/** How each field is written, and read again: undefined where the text makes no sense. */
const asNumber = {write: String, read: (text) => (/^\d{1,6}$/.test(text) ? Number(text) : undefined)};
const asSwitch = {write: (on) => (on ? "on" : "off"), read: (text) => (["on", "off"].includes(text) ? text === "on" : undefined)};
const oneOf = (isKnown) => ({write: String, read: (text) => (isKnown(text) ? text : undefined)});
const asText = {write: String, read: String};

const IN_ADDRESS = {
  source: asText,
  target: asText,
  place: {write: (index) => page.places[index].path, read: (path) => (placeIndex(path) < 0 ? undefined : placeIndex(path))},
  item: asNumber,
  head: asNumber,
  symbol: oneOf(isSymbol),
  row: asNumber,
  cell: {
    write: ({row, col}) => `${row},${col}`,
    read: (text) => {
      const [row, col] = text.split(",").map(asNumber.read);
      return row === undefined || col === undefined ? undefined : {row, col};
    },
  },
  panel: oneOf((id) => PANELS.some((panel) => panel.id === id)),
  scaling: asSwitch,
  masking: asSwitch,
  broken: oneOf((key) => BREAKAGES.some((breakage) => breakage.key === key)),
  story: oneOf((id) => page.stories.some((story) => story.id === id)),
  stop: asNumber,
};

/** What an address that does not name them stands for. */
const WITHOUT_WORD = {scaling: true, masking: true, broken: null, story: null, stop: 0};

/** In a notebook the page has no address. */
const hasAddress = () => ["file:", "http:", "https:"].includes(location.protocol);

function writeAddress() {
  if (!hasAddress()) return;
  history.replaceState(null, "", `#${addressOf(state)}`);
}

function addressOf(chosen) {
  const opening = openingTexts(chosen.item);
  const own = chosen.source === opening.source && chosen.target === opening.target;
  const given = Object.entries(IN_ADDRESS).filter(([field]) => (
    chosen[field] !== null && chosen[field] !== WITHOUT_WORD[field] && !(own && (field === "source" || field === "target"))));
  const named = given.map(([field, {write}]) => [field, write(chosen[field])]);
  return new URLSearchParams([...named, ...textsOfOthers(chosen.item)]).toString();
}

/** The texts typed for the other sentences of the batch, which have a part in the loss: source.1, target.1 … */
function textsOfOthers(chosen) {
  return session.items.flatMap(({source, target, written}, item) => (
    item === chosen || session.items[item] === session.opening[item] ? []
      : [[`source.${item}`, source], ...(written ? [] : [[`target.${item}`, target]])]));
}

/** The session gets them; a sentence that the address does not name, or that cannot be read, is that of the page. */
function readTextsOfOthers(asked, chosen) {
  session.opening.forEach((opening, item) => {
    if (item === chosen) return;
    const [source, target] = ["source", "target"].map((side) => asked.get(`${side}.${item}`));
    if (source === null || takeTexts({source, target}, item)) takeTexts(opening, item);
  });
}

function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const item = Math.min(asNumber.read(asked.get("item") ?? "") ?? state.item, numItems() - 1);
  const changes = {...WITHOUT_WORD, ...openingTexts(item), nudge: null};
  readTextsOfOthers(asked, item);
  if (asked.has("source")) changes.target = null; // of another source the model writes the target, unless it is named
  for (const [field, {read}] of Object.entries(IN_ADDRESS)) {
    const value = asked.has(field) ? read(asked.get(field)) : undefined;
    if (value !== undefined) changes[field] = value;
  }
  return changes;
}
