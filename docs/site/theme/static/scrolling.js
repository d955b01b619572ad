// What is wider than the page and scrolls in itself can be reached by the keyboard: Safari gives the focus to nothing else.
"use strict";

function makeReachable() {
  for (const box of document.querySelectorAll("pre, .table-wrapper, .formula")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

addEventListener("load", makeReachable);
addEventListener("resize", makeReachable);
