"use strict";
// The story's caption, above the views: the text of the stop, and the buttons that lead on.
//
// How to use:
//   renderStory(container, view)   in every redraw; the caption's elements are made once, and then brought up to date

const partOfStory = (name) => document.querySelector(`#story .story-${name}`);

function renderStory(container, view) {
  if (container.children.length === 0) container.replaceChildren(...makeBar());
  followStory(view);
  const open = isTold();
  container.hidden = tellableStories().length === 0;
  partOfStory("bar").hidden = !open;
  partOfStory("open").hidden = open;
  document.getElementById("strip").classList.toggle("ahead", open && !isGradient(view.state.symbol) && view.place.kind === "attention");
  if (open) showStop();
  else pointAt([], view, false);
}

function makeBar() {
  const button = (name, text, onclick, label = null) =>
    build("button", {type: "button", class: `small story-${name}`, "data-key": `story:${name}`, "aria-label": label, onclick}, text);
  const turn = (by) => () => enterStop(told.story, told.stop + by);
  const choice = build("select", {class: "story-choice", "aria-label": "Story", "data-key": "story:choice",
    onchange: ({target}) => enterStop(target.value, 0)});
  const bar = build("div", {class: "story-bar", onkeydown: pressOnBar},
    build("p", {class: "story-text", "aria-live": "polite", "aria-atomic": "true"}), build("div", {class: "story-offers"}),
    build("div", {class: "story-line"}, choice, build("span", {class: "story-count"}), button("skip", "Skip", closeBar, "Skip the story"),
      button("back", "←", turn(-1), "Back"), button("forward", "Next →", turn(1))));
  return [bar, button("open", "Tell me the story", () => enterStop(tellableStories()[0].id, 0))];
}

function closeBar() {
  leaveStory();
  partOfStory("open").focus();
}

/** With the focus in the bar the arrows lead through the story, not along the strip. */
function pressOnBar(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.target.closest("select")) return;
  const button = {ArrowLeft: "back", ArrowRight: "forward", Escape: "skip"}[event.key];
  if (!button) return;
  event.preventDefault();
  if (!partOfStory(button).disabled) partOfStory(button).click();
}

function showStop() {
  const story = storyOf(told.story), stop = story.stops[told.stop];
  const stories = tellableStories();
  partOfStory("choice").replaceChildren(...stories.map(({id, title}) => build("option", {value: id, selected: id === told.story}, title)));
  partOfStory("count").textContent = `${told.stop + 1} of ${story.stops.length}`;
  setCaption(partOfStory("text"), captionOfStop(story, stop));
  partOfStory("offers").replaceChildren(...offersOf(stop));
  partOfStory("back").disabled = told.stop === 0;
  const last = told.stop === story.stops.length - 1;
  partOfStory("forward").disabled = last;
  partOfStory("skip").textContent = last ? "Done" : "Skip";
}

/** Unless it is there already: a screen reader would say it again. */
function setCaption(element, nodes) {
  const fresh = build("p", {}, ...nodes);
  if (fresh.innerHTML !== element.innerHTML) element.replaceChildren(...fresh.childNodes);
}

function captionOfStop(story, stop) {
  const problem = (words) => [`Story “${story.id}”, stop ${told.stop + 1}, ${words}.`];
  if (told.problem) return problem(told.problem);
  try {
    return toldText(agrees(story, stop) ? stop.agreed : stop.text, told);
  } catch (error) {
    if (!(error instanceof UntoldError)) throw error;
    return problem(`text: ${error.message}`);
  }
}

/** Whether the model agrees with the target, and the stop has something to say about that. */
const agrees = ({about}, {agreed}) => about === "wrong token" && agreed !== undefined && !wouldWriteAnother(told.subject.row);

function offersOf(stop) {
  const offer = (name, text, onclick) =>
    build("button", {type: "button", class: "small", "data-key": `story:${name}`, onclick}, text);
  if (agrees(storyOf(told.story), stop)) {
    const target = wrongTarget();
    return target === null ? [] : [offer("ask", `Ask for “${target}”`, () => askFor(target))];
  }
  if (stop.do !== "step") return [];
  const undo = () => {
    takeStepBack();
    setState({});
  };
  return [offer("step", told.version === null ? "Take the step" : "Another step", takeStep),
    ...(told.version === null ? [] : [offer("undo", "Undo", undo)])];
}
