"use strict";
// The line between map and strip: where the reader is in the model, whether the gradients there are right, the selectors
// (head, sentence) and the switches (√d_k, masks, break it).

function renderPlace(container, view, verdict) {
  const heads = view.result.heads.map((_, head) => [head, String(head + 1)]);
  const items = view.result.items.map((_, item) => [item, `${item + 1}: ${session.items[item].source}`]);
  container.replaceChildren(
    build("h2", {title: view.place.path}, view.place.title), verdict.measured ? verdictText(view, verdict) : "",
    ...(view.place.kind === "attention" ? [segments("Head", "head", heads, view.state.head, (head) => setState({head}))] : []),
    ...(items.length > 1 ? [menu("Sentence", "item", items, view.state.item, (item) => setState({item: Number(item)}))] : []),
    checkbox("scaling", ["÷ √d", make("sub", "", "k")], view.state.scaling, "Divide the scores by the root of d_k"),
    checkbox("masking", ["masks"], view.state.masking, "Let the mask hide keys"),
    menu("", "broken", [["", "Break it …"], ...BREAKAGES.map(({key, title}) => [key, title])],
      view.state.broken ?? "", (key) => setState({broken: key || null})));
}

/** What the reader has changed: a mistake, an edit. */
function notesOn(view) {
  const broken = BREAKAGES.find(({key}) => key === view.state.broken);
  return [
    ...(broken ? [build("p", {class: "explanation"}, ...withSubscripts(broken.explanation(view.result.problem)))] : []),
    ...(view.state.edit ? [editChip(view)] : [])];
}

/** A group of radio buttons that looks like one bar. */
function segments(title, name, entries, chosen, onChange) {
  return build("fieldset", {class: "segments"}, build("legend", {}, title), build("div", {class: "bar"}, ...entries.map(([value, text]) => (
    build("label", {}, build("input", {type: "radio", name, value, checked: value === chosen, "data-key": `${name}:${value}`, onchange: () => onChange(value)}),
      build("span", {}, text))))));
}

function menu(title, name, entries, chosen, onChange) {
  const select = build("select", {name, "data-key": `menu:${name}`, "aria-label": title || "Break it", onchange: () => onChange(select.value)},
    ...entries.map(([value, text]) => build("option", {value}, text)));
  select.value = String(chosen);
  return title === "" ? select : build("label", {class: `menu ${name}`}, build("span", {}, title), select);
}

function checkbox(name, text, checked, description) {
  return build("label", {class: "switch"}, build("input", {type: "checkbox", name, checked, "data-key": `switch:${name}`, "aria-label": description,
    onchange: ({target}) => setState({[name]: target.checked})}), build("span", {}, ...text));
}

/** What is edited, with a button that takes it back; at another place of the model, where that is. */
function editChip({place, state: {edit: {path, symbol, head, row, col, value}}}) {
  const {label} = ATTENTION_TENSORS[symbol];
  const where = `${symbol === "dY" ? "" : ` of head ${head + 1}`}${path === place.path ? "" : ` in ${page.places[placeIndex(path)].title}`}`;
  return build("p", {class: "chip"}, ...withSubscripts(label), `[${row}, ${col}]${where} set to ${formatNumber(value)} `,
    build("button", {type: "button", class: "small", "data-key": "undo-edit", "aria-label": `Undo the change of ${symbol}[${row}, ${col}]`,
      onclick: () => setState({edit: null})}, "undo"));
}
