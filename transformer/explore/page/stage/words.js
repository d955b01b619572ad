"use strict";
// Each step in words: what a tensor is for, and why its gradient is what the formula says.
//
// How to use:
//   inWords(view, "dV") -> a sentence or two; "" for what needs none

function inWords(view, symbol) {
  if (brokenRule(view, symbol)) return ""; // it is wrong, and the explanation of the mistake says why
  const said = kindOfPlace(view).words[ruleSymbol(view, symbol)] ?? "";
  return asShown(view, typeof said === "function" ? said(view) : said);
}
