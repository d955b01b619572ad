"""The names of rows and columns are those of the terminal: places/labels.js has the rules of explore/labels.py."""

import random

from transformer.explore.labels import names, row_names

TEXTS = ["0", "2", "-", "wa", "è", " ", "\u3000", "a b", "\t", "\n", "", "<bos>", "<eos>", "<pad>", "<unk>"]


def test_the_page_names_tokens_as_the_terminal_does(opened):
    rng = random.Random(4)
    read = [rng.choices(TEXTS, k=rng.randrange(16)) for _ in range(200)]
    written = [[rng.choice([token, "2"]) for token in [*tokens[1:], "-"][: len(tokens)]] for tokens in read]
    pairs = list(zip(read, written, strict=True))
    assert opened.evaluate("(all) => all.map(tokenNames)", read) == [names(tokens) for tokens in read]
    found = opened.evaluate("(all) => all.map(([read, written]) => rowNames(read, written))", pairs)
    assert found == [row_names(*both) for both in pairs]
    assert opened.evaluate("currentView().labels.query") == ["<bos> → e", "e → f", "f → g", "g → <eos>"]
