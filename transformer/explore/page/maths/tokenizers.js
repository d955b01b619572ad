// Tokenizers: text to token ids and back, by words, characters or byte pairs, as transformer/data/tokenizer.py has them.
//
// How to use:
//   const tokenizer = tokenizerOf({kind, tokens, merges})   kind: "words", "characters" or "bpe"; the tokens by id; of
//                                         byte pairs the pairs that merge, [[left, right]…], the first learned first
//   tokenizer.encode(text) -> [id…]       without begin- and end-of-sentence; UNK for what the vocabulary does not have
//   tokenizer.unknown(text) -> [piece…]   the pieces of the text that it does not have, each once
//   tokenizer.decode(ids) -> text         up to the first end-of-sentence
//   tokenizer.tokens(ids) -> [label…]     one readable label for each id, specials included

const SPECIALS = ["<pad>", "<bos>", "<eos>", "<unk>"];
const [PAD, BOS, EOS, UNK] = SPECIALS.keys();

// What Python's str.split() takes for white space: unlike JavaScript's \s with U+001C to U+001F and U+0085, without U+FEFF.
const WHITE_SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;

/** Whether there is nothing but white space in a text. */
const isBlank = (text) => text.split(WHITE_SPACE).join("") === "";

/** The part that all tokenizers have in common: a vocabulary. Each of them says how to split a text and how to join. */
class Tokenizer {
  /** `tokens`: by id, the four specials first. No text names a special: "<eos>" in a text is unknown. */
  constructor(tokens) {
    this.vocabulary = tokens;
    this.ids = new Map(tokens.map((token, id) => [token, id]).slice(SPECIALS.length));
  }

  encode(text) {
    return this.split(text).map((piece) => this.ids.get(piece) ?? UNK);
  }

  unknown(text) {
    return [...new Set(this.split(text).filter((piece) => !this.ids.has(piece)))];
  }

  decode(ids) {
    const end = ids.indexOf(EOS);
    return this.join(ids.slice(0, end < 0 ? ids.length : end).filter((id) => id !== PAD && id !== BOS));
  }

  tokens(ids) {
    return ids.map((id) => this.vocabulary[id]);
  }
}

/** Words between white space. Decoding puts one blank between two words. */
class WordTokenizer extends Tokenizer {
  split(text) {
    return text.split(WHITE_SPACE).filter((word) => word !== "");
  }

  join(ids) {
    return this.tokens(ids).join(" ");
  }
}

/** Every character is a token, blanks included. A character is a code point, which JavaScript may store as two units. */
class CharacterTokenizer extends Tokenizer {
  split(text) {
    return Array.from(text);
  }

  join(ids) {
    return this.tokens(ids).join("");
  }
}

// The pieces in which byte pairs are merged, those of GPT-2: an English ending, or letters, digits, other signs with at
// most one blank before them, or white space. The last blank of several belongs to the word that follows.
const PIECES = new RegExp([
  "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", " ?\\p{L}+", " ?\\p{N}+", " ?[^\\p{White_Space}\\p{L}\\p{N}]+",
  "\\p{White_Space}+(?!\\P{White_Space})", "\\p{White_Space}+",
].join("|"), "gu");

/**
 * A visible character for each of the 256 bytes, in which the tokens are written. A byte that is a visible character of
 * Latin-1 stands for itself; the others, in their order, have the characters from U+0100.
 */
const BYTE_ALPHABET = (() => {
  const visible = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  let next = 0x100;
  return Array.from({length: 256}, (_, byte) => String.fromCodePoint(visible(byte) ? byte : next++));
})();
const BYTE_OF = new Map(BYTE_ALPHABET.map((character, byte) => [character, byte]));

/** Byte-pair encoding of UTF-8: any text encodes, and decodes exactly. */
class BytePairTokenizer extends Tokenizer {
  constructor(tokens, merges) {
    super(tokens);
    this.ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank])); // no token has a blank
  }

  split(text) {
    return (text.match(PIECES) ?? []).flatMap((piece) => this.merged(
      Array.from(new TextEncoder().encode(piece), (byte) => BYTE_ALPHABET[byte])));
  }

  /** The symbols with neighbours joined, always the pair that was learned first, as long as a learned one is there. */
  merged(symbols) {
    const rankAt = (place) => this.ranks.get(`${symbols[place]} ${symbols[place + 1]}`) ?? Infinity;
    for (;;) {
      let first = 0;
      for (let place = 1; place < symbols.length - 1; place++) {
        if (rankAt(place) < rankAt(first)) first = place;
      }
      if (rankAt(first) === Infinity) return symbols;
      symbols.splice(first, 2, symbols[first] + symbols[first + 1]);
    }
  }

  /** A character's bytes may lie in several tokens, so what stands between two unknown tokens is decoded as a whole. */
  join(ids) {
    let text = "", run = "";
    for (const id of ids) {
      if (id === UNK) {
        text += textOfBytes(run) + SPECIALS[UNK];
        run = "";
      } else {
        run += this.vocabulary[id];
      }
    }
    return text + textOfBytes(run);
  }

  /** The text of each token; a token with part of a character is shown as the symbols of its bytes. */
  tokens(ids) {
    return super.tokens(ids).map((token, place) => {
      const text = ids[place] < SPECIALS.length ? token : textOfBytes(token);
      return text.includes("\ufffd") ? token : text;
    });
  }
}

/** The text whose bytes are written in the alphabet; U+FFFD where they are no UTF-8. */
function textOfBytes(symbols) {
  const bytes = Uint8Array.from(symbols, (character) => BYTE_OF.get(character));
  return new TextDecoder("utf-8", {ignoreBOM: true}).decode(bytes); // true: a byte order mark is a character like others
}

const TOKENIZERS = {words: WordTokenizer, characters: CharacterTokenizer, bpe: BytePairTokenizer};
const tokenizerOf = ({kind, tokens, merges}) => new TOKENIZERS[kind](tokens, merges);
