"use strict";
// The names of rows and columns that are tokens: by the same rules as transformer/explore/labels.py, which explains them.
//
// How to use:
//   tokenNames(["2", "0", "2"]) -> ["2₁", "0", "2₂"]: equal texts of one sequence are told apart
//   rowNames(["<bos>", "9"], ["9", "<eos>"]) -> ["<bos> → 9", "9 → <eos>"]: a decoder's rows, by the token that is read
//       there and the one that is to be written next ("" where that is not known)

const PADDING = "<pad>";
const SIGNS_OF_SPACES = {" ": "␣", "\u3000": "␣", "\t": "⇥", "\n": "⏎"};
const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉";

const withSigns = (token) => token.replace(/[ \u3000\t\n]/g, (space) => SIGNS_OF_SPACES[space]) || "(empty)";
const subscript = (number) => [...String(number)].map((digit) => SUBSCRIPTS[digit]).join("");

function tokenNames(tokens) {
  const texts = tokens.map(withSigns);
  const total = new Map(), soFar = new Map();
  for (const text of texts) total.set(text, (total.get(text) ?? 0) + 1);
  return texts.map((text) => {
    soFar.set(text, (soFar.get(text) ?? 0) + 1);
    return total.get(text) > 1 && text !== PADDING ? text + subscript(soFar.get(text)) : text;
  });
}

/** What a row writes the next one reads: there it has the same name, which counts in the tokens read and the last written. */
function rowNames(read, written) {
  const sequence = [...read, ...written.slice(-1)];
  const names = tokenNames(sequence);
  return written.map((token, row) => {
    if (token === "" || token === PADDING) return names[row];
    return `${names[row]} → ${token === sequence[row + 1] ? names[row + 1] : withSigns(token)}`;
  });
}
