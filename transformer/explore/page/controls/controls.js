"use strict";
// The selectors (head, sentence) and the switches (√d_k, masks, break it), above the strip.

function renderControls(container, view) {
  const heads = view.result.heads.map((_, head) => [head, String(head)]);
  const items = view.result.items.map((_, item) => [item, `${item}: ${sentenceOf(item)}`]);
  const selectors = [
    ...(view.place.kind === "attention" ? [segments("Head", "head", heads, view.state.head, (head) => setState({head}))] : []),
    ...(items.length > 1 ? [menu("Sentence", "item", items, view.state.item, (item) => setState({item: Number(item)}))] : [])];
  const mistakes = BREAKAGES.map(({key, title}) => [key, title]);
  const switches = [
    checkbox("scaling", ["÷ √d", make("sub", "", "k")], view.state.scaling, "Divide the scores by the root of d_k"),
    checkbox("masking", ["masks"], view.state.masking, "Let the mask hide keys"),
    menu("Break it", "broken", [["", "no, all is right"], ...mistakes],
      view.state.broken ?? "", (key) => setState({broken: key || null})),
    ...(view.state.edit ? [editChip(view)] : [])];
  container.replaceChildren(make("div", "controls", ...selectors, ...switches));
  const broken = BREAKAGES.find(({key}) => key === view.state.broken);
  if (broken) container.append(make("p", "explanation", ...withSubscripts(broken.explanation(view.result.problem))));
  if (view.place.kind === "attention") container.append(...switchedTexts(view));
}

/** The words of a batch item, for its entry in the menu. */
function sentenceOf(item) {
  const words = tokensOf(item).source.filter((token) => !/^<.+>$/.test(token));
  const text = words.join(words.every((word) => word.length <= 1) ? "" : " "); // tokens that are single letters
  return text.length > 42 ? `${text.slice(0, 40)}…` : text;
}

/** A group of radio buttons that looks like one bar. */
function segments(title, name, entries, chosen, onChange) {
  const group = make("fieldset", "segments", make("legend", "", title));
  const bar = make("div", "bar");
  for (const [value, text] of entries) {
    const input = make("input");
    Object.assign(input, {type: "radio", name, value: String(value), checked: value === chosen});
    input.dataset.key = `${name}:${value}`;
    input.addEventListener("change", () => onChange(value));
    bar.append(make("label", "", input, make("span", "", text)));
  }
  group.append(bar);
  return group;
}

function menu(title, name, entries, chosen, onChange) {
  const select = make("select");
  select.name = name;
  select.dataset.key = `menu:${name}`;
  for (const [value, text] of entries) {
    const option = make("option", "", text);
    option.value = String(value);
    select.append(option);
  }
  select.value = String(chosen);
  select.addEventListener("change", () => onChange(select.value));
  return make("label", `menu ${name}`, make("span", "", title), select);
}

function checkbox(name, text, checked, description) {
  const input = make("input");
  Object.assign(input, {type: "checkbox", name, checked});
  input.dataset.key = `switch:${name}`;
  input.setAttribute("aria-label", description);
  input.addEventListener("change", () => setState({[name]: input.checked}));
  return make("label", "switch", input, make("span", "", ...text));
}

/** What is edited, with a button that takes it back; at another place of the model, where that is. */
function editChip({place, state: {edit: {path, symbol, head, row, col, value}}}) {
  const {label} = ATTENTION_TENSORS[symbol];
  const undo = make("button", "small", "undo");
  undo.type = "button";
  undo.dataset.key = "undo-edit";
  undo.setAttribute("aria-label", `Undo the change of ${symbol}[${row}, ${col}]`);
  undo.addEventListener("click", () => setState({edit: null}));
  const where = `${symbol === "dY" ? "" : ` of head ${head}`}${path === place.path ? "" : ` in ${page.places[placeIndex(path)].title}`}`;
  return make("span", "chip", ...withSubscripts(label), `[${row}, ${col}]${where} set to ${formatNumber(value)} `, undo);
}
