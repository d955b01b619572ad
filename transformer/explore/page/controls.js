"use strict";
// The selectors (kind, layer, head, sentence) and the switches (√d_k, masks, break it, one scale), above the strip.

const KINDS = ["encoder self", "decoder self", "cross", "attention"].map((kind) => [kind, kind]);

/** Draw the controls; `verdict` says which gradients are wrong: see verdictOf. */
function renderControls(container, view, verdict) {
  const heads = view.result.heads.map((_, head) => [head, String(head)]);
  const items = view.result.items.map((_, item) => [item, `${item}: ${sentenceOf(view, item)}`]);
  const selectors = make("div", "controls", ...attentionSelectors(view),
    segments("Head", "head", heads, view.state.head, (head) => setState({head})),
    ...(items.length > 1 ? [menu("Sentence", "item", items, view.state.item, (item) => setState({item: Number(item)}))] : []));
  const applicable = BREAKAGES.filter((breakage) => breakage.applies(view.result.problem));
  const switches = make("div", "controls switches",
    checkbox("scaling", view.attention.usualScale ? ["÷ √d", make("sub", "", "k")] : [`· ${scaleText(view.attention)}`],
      view.state.scaling, view.attention.usualScale ? "Divide the scores by the root of d_k" : "Scale the scores"),
    checkbox("masking", ["masks"], view.state.masking, "Let the mask hide keys", view.attention.mask === null),
    menu("Break it", "broken", [["", "no, all is right"], ...applicable.map(({key, title}) => [key, title])],
      view.state.broken ?? "", (key) => setState({broken: key || null})),
    checkbox("common", ["one gradient scale"], view.state.common, "One colour scale for all gradients"),
    ...(view.state.edit ? [editChip(view.state.edit)] : [editMenu(view)]),
    verdictText(view, verdict));
  container.replaceChildren(selectors, switches);
  const broken = BREAKAGES.find(({key}) => key === view.state.broken);
  if (broken) container.append(make("p", "explanation", ...withSubscripts(broken.explanation(view.result.problem))));
  container.append(...switchedTexts(view));
}

/** By kind and layer; by name where that leaves several. */
function attentionSelectors(view) {
  const places = new Set(page.attentions.map(({kind, layer}) => `${kind} ${layer}`));
  if (places.size < page.attentions.length) {
    return [menu("Attention", "attention", page.attentions.map(({name}, index) => [index, name]), view.state.attention,
      (index) => setState({attention: Number(index)}))];
  }
  return [
    segments("Attention", "kind", KINDS.filter(([kind]) => page.attentions.some((other) => other.kind === kind)),
      view.attention.kind, (kind) => setState({attention: closest(view, kind)})),
    segments("Layer", "layer", layersOf(view).map(([layer]) => [layer, String(layer)]), view.attention.layer,
      (layer) => setState({attention: layersOf(view).find(([other]) => other === layer)[1]})),
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
function sentenceOf(view, item) {
  const words = (page.tokens[view.attention.keys][item] ?? []).filter((token) => !/^<.+>$/.test(token));
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

function checkbox(name, text, checked, description, disabled = false) {
  const input = make("input");
  Object.assign(input, {type: "checkbox", name, checked, disabled});
  input.dataset.key = `switch:${name}`;
  input.setAttribute("aria-label", description);
  input.addEventListener("change", () => setState({[name]: input.checked}));
  return make("label", "switch", input, make("span", "", ...text));
}

/** Leads to the tensors whose entries can be changed: a form for the chosen cell stands on the stage. */
function editMenu(view) {
  const entries = Object.entries(EDITABLE).filter(([symbol]) => hasTensor(view, symbol)).map(([symbol, name]) => [symbol, `an entry of ${name}`]);
  return menu("Change", "change", [["", "no entry"], ...entries], "", (symbol) => {
    setState({symbol});
    setState({cell: telling().cell});
    const field = document.querySelector("[data-key=edit]");
    field.focus();
    field.select();
  });
}

/** What is edited, with a button that takes it back. */
function editChip({symbol, head, row, col, value}) {
  const {label} = TENSORS[symbol === "G" ? "dY" : symbol];
  const undo = make("button", "small", "undo");
  undo.type = "button";
  undo.dataset.key = "undo-edit";
  undo.setAttribute("aria-label", `Undo the change of ${symbol}[${row}, ${col}]`);
  undo.addEventListener("click", () => setState({edit: null}));
  const ofHead = symbol === "G" ? "" : ` of head ${head}`;
  return make("span", "chip", ...withSubscripts(label), `[${row}, ${col}]${ofHead} set to ${formatNumber(value)} `, undo);
}
