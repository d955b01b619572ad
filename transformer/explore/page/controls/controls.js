"use strict";
// The selectors (kind, layer, head, sentence) and the switches (√d_k, masks, break it, one scale), above the strip.

const KINDS = ["encoder self", "decoder self", "cross", "attention"].map((kind) => [kind, kind]);

/** Draw the controls; `verdict` says which gradients are wrong: see verdictOf. */
function renderControls(container, view, verdict) {
  const heads = view.result.heads.map((_, head) => [head, String(head)]);
  const items = view.result.items.map((_, item) => [item, `${item}: ${sentenceOf(item)}`]);
  const selectors = [
    ...(view.session ? [] : attentionSelectors(view)),
    ...(view.place.kind === "attention" ? [segments("Head", "head", heads, view.state.head, (head) => setState({head}))] : []),
    ...(items.length > 1 ? [menu("Sentence", "item", items, view.state.item, (item) => setState({item: Number(item)}))] : [])];
  const mistakes = BREAKAGES.map(({key, title, needs, applies}) => (
    view.session || applies(view.result.problem) ? [key, title] : [key, `${title}: needs ${needs}`, "disabled"]));
  const usual = view.session !== null || view.attention.usualScale;
  const switches = [
    checkbox("scaling", usual ? ["÷ √d", make("sub", "", "k")] : [`· ${scaleText(view.attention)}`],
      view.state.scaling, usual ? "Divide the scores by the root of d_k" : "Scale the scores"),
    checkbox("masking", ["masks"], view.state.masking, "Let the mask hide keys", view.session === null && !hasMask(view)),
    menu("Break it", "broken", [["", "no, all is right"], ...mistakes],
      view.state.broken ?? "", (key) => setState({broken: key || null})),
    checkbox("common", ["one gradient scale"], view.state.common, "One colour scale for all gradients"),
    ...(view.state.edit ? [editChip(view)] : editMenu(view))];
  // On a live page the map and the breadcrumb lead to the places and have the verdict, and the rest has room in one line.
  container.replaceChildren(...(view.session ? [make("div", "controls", ...selectors, ...switches)]
    : [make("div", "controls", ...selectors), make("div", "controls switches", ...switches, verdictText(view, verdict))]));
  const broken = BREAKAGES.find(({key}) => key === view.state.broken);
  if (broken) container.append(make("p", "explanation", ...withSubscripts(broken.explanation(view.result.problem))));
  if (view.place.kind === "attention") container.append(...switchedTexts(view));
}

/** By kind and layer; by name where that leaves several. */
function attentionSelectors(view) {
  const places = new Set(page.attentions.map(({kind, layer}) => `${kind} ${layer}`));
  if (places.size < page.attentions.length) {
    return [menu("Attention", "attention", page.attentions.map(({name}, index) => [index, name]), view.state.place,
      (index) => setState({place: Number(index)}))];
  }
  return [
    segments("Attention", "kind", KINDS.filter(([kind]) => page.attentions.some((other) => other.kind === kind)),
      view.attention.kind, (kind) => setState({place: closest(view, kind)})),
    segments("Layer", "layer", layersOf(view).map(([layer]) => [layer, String(layer)]), view.attention.layer,
      (layer) => setState({place: layersOf(view).find(([other]) => other === layer)[1]})),
  ];
}

/** The index of the attention of a kind in the layer nearest to the present one. */
function closest(view, kind) {
  const distance = (index) => Math.abs(page.attentions[index].layer - view.attention.layer);
  const found = [...page.attentions.keys()].filter((index) => page.attentions[index].kind === kind);
  return found.reduce((best, other) => (distance(other) < distance(best) ? other : best));
}

/** [layer, index] of the attentions of the present kind. */
function layersOf(view) {
  return page.attentions.map(({kind, layer}, index) => [kind, layer, index])
    .filter(([kind]) => kind === view.attention.kind).map(([, layer, index]) => [layer, index]);
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
  for (const [value, text, disabled] of entries) {
    const option = make("option", "", text);
    Object.assign(option, {value: String(value), disabled: Boolean(disabled)});
    select.append(option);
  }
  select.value = String(chosen);
  select.addEventListener("change", () => onChange(select.value));
  return make("label", `menu ${name}`, make("span", "", title), select);
}

function checkbox(name, text, checked, description, disabled = false) {
  const input = make("input");
  Object.assign(input, {type: "checkbox", name, checked, disabled});
  input.dataset.key = `switch:${name}`;
  input.setAttribute("aria-label", description);
  input.addEventListener("change", () => setState({[name]: input.checked}));
  return make("label", "switch", input, make("span", "", ...text));
}

/** Leads to the tensors whose entries can be changed, if there are any: a form for the chosen cell stands on the stage. */
function editMenu(view) {
  const entries = Object.entries(kindOfPlace(view).editable).filter(([symbol]) => hasTensor(view, symbol)).map(([symbol, name]) => [symbol, `an entry of ${name}`]);
  if (entries.length === 0) return [];
  return [menu("Change", "change", [["", "no entry"], ...entries], "", (symbol) => {
    setState({symbol});
    const field = document.querySelector("[data-key=edit]");
    field.focus();
    field.select();
  })];
}

/** What is edited, with a button that takes it back; at another place of the model, where that is. */
function editChip({place, state: {edit: {path, symbol, head, row, col, value}}}) {
  const {label} = ATTENTION_TENSORS[symbol === "G" ? "dY" : symbol];
  const undo = make("button", "small", "undo");
  undo.type = "button";
  undo.dataset.key = "undo-edit";
  undo.setAttribute("aria-label", `Undo the change of ${symbol}[${row}, ${col}]`);
  undo.addEventListener("click", () => setState({edit: null}));
  const where = `${symbol === "G" ? "" : ` of head ${head}`}${path === place.path ? "" : ` in ${page.places[placeIndex(path)].title}`}`;
  return make("span", "chip", ...withSubscripts(label), `[${row}, ${col}]${where} set to ${formatNumber(value)} `, undo);
}
