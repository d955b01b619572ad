"use strict";
// Motion that a reader can pause, step and slow: a row of frames, shown one after the other.
//
// How to use:
//   player({name, count, show, autoplay}) -> an element with the buttons
//       name       what is played, for its label
//       count      of the frames; show(n) draws what is seen after n of them, show(count) the whole
//       time       milliseconds that all of them take, unless slowed
//   motionAllowed()    whether anything may move by itself on this page; stepping by hand is always possible

const SLOWER = 4;
let isSlow = false; // the reader's choice, for all that moves

const motionAllowed = () => !matchMedia("(prefers-reduced-motion: reduce)").matches;

function player({name, count, show, time}) {
  let at = count, timer = null;
  const button = (key, text, label, onclick, more = {}) => build("button",
    {type: "button", class: "small", "data-key": `${name}:${key}`, "aria-label": label, title: label, onclick, ...more}, text);
  const draw = () => {
    show(at);
    play.textContent = timer === null ? "▶" : "❚❚";
  };
  const pause = () => {
    clearTimeout(timer);
    timer = null;
    draw();
  };
  const tick = () => {
    if (!box.isConnected) return;
    at += 1;
    if (at >= count) return pause();
    timer = setTimeout(tick, time / count * (isSlow ? SLOWER : 1));
    draw();
  };
  const begin = () => {
    if (timer !== null) return pause();
    if (at >= count) at = 0;
    timer = setTimeout(tick, 0);
    draw();
  };
  const step = (by) => {
    at = by < 0 && at <= 0 ? count : by > 0 && at >= count ? 1 : at + by;
    pause();
  };
  const play = button("play", "▶", `Play ${name}, or pause`, begin, {"data-play": ""});
  const slow = button("slow", "slow", "Slowly", () => {
    isSlow = !isSlow;
    slow.setAttribute("aria-pressed", String(isSlow));
  }, {"aria-pressed": String(isSlow)});
  const box = build("span", {class: "player"}, play, button("back", "‹", "One back", () => step(-1)), button("on", "›", "One on", () => step(1)), slow);
  return box;
}

/** Light up cells of grids: [grid, row, col] each; those of before go out. */
function pulse(cells) {
  for (const mark of document.querySelectorAll(".pulse")) mark.remove();
  for (const [box, row, col] of cells) {
    const {matrix, size} = box.parentNode;
    box.querySelector(".cells").append(frameOf({row, col}, matrix, size, "pulse"));
  }
}
