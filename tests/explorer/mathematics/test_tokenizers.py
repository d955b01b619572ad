"""The page's tokenizers are those of Python: the same ids, labels and texts, in any script."""

import random

import pytest

from transformer.data.tokenizer import BytePairTokenizer, build_tokenizers
from transformer.explore.live import described

SENTENCES = ["I'll say: it's 12,345 o'clock — we've won!", "彼はつらい人生を送った。", "naïve Straße  und  mehr",
             "the the then there", "שלום עולם", "привет мир", "👩‍👩‍👧 🇯🇵 é", "x" * 40]
# What tokenizers are apt to disagree on: white space of every kind, endings, digits of several scripts, composed signs,
# names of specials, the byte order mark, and characters of two UTF-16 units.
PARTS = [*" \t\n\r\v\f\x1c\x1f\x85\xa0\u2003\u2028\u3000\ufeff\u200b", "'s", "'ll", "'re", "'S", "don't", "<eos>",
         "<unk>", "the", "then", "12", "٣", "²", "Ⅷ", "é", "e\u0301", "ß", "ﬀ", "彼", "は", "。", "—", "…", "$",
         "👩\u200d👧", "🇯🇵", "𝔘", "ש", "мир", "xxx", "\0", "\u00ad", "Ġ", "Ċ"]
CORPUS = [*SENTENCES, *(f"{3 * part}the{2 * part}" for part in PARTS)]


def texts(seed):
    """Random texts of those parts and of single characters of the corpus."""
    rng = random.Random(seed)
    parts = [*PARTS, *"".join(SENTENCES)]
    return ["", *CORPUS, *PARTS, *(f"{2 * part}the" for part in PARTS),
            *("".join(rng.choices(parts, k=rng.randrange(12))) for _ in range(400))]


@pytest.fixture(scope="module", params=["words", "characters", "bpe", "bytes"])
def tokenizer(request):
    """`bytes`: byte pairs of which none is merged."""
    if request.param == "bytes":
        return BytePairTokenizer.train([], 260)
    return build_tokenizers(request.param, CORPUS, [], shared=True)[0]


def asked(page, tokenizer, expression, values):
    function = f"([data, values]) => {{ const tokenizer = tokenizerOf(data); return values.map({expression}); }}"
    return page.evaluate(function, [described(tokenizer), values])


def test_a_text_has_the_same_ids_and_ids_the_same_text_and_labels(page, tokenizer):
    """Any ids: with specials among them, and bytes that are no text."""
    rng, given, size = random.Random(2), texts(1), len(tokenizer.vocabulary)
    encoded = [tokenizer.encode(text) for text in given]
    found = asked(page, tokenizer, "(text) => [tokenizer.encode(text), tokenizer.unknown(text)]", given)
    for text, ids, one in zip(given, encoded, found, strict=True):
        assert one == [ids, tokenizer.unknown(text)], repr(text)
    rows = encoded + [[rng.choice([rng.randrange(size), rng.randrange(4)]) for _ in range(rng.randrange(9))]
                      for _ in range(400)]
    found = asked(page, tokenizer, "(ids) => [tokenizer.decode(ids), tokenizer.tokens(ids)]", rows)
    for ids, one in zip(rows, found, strict=True):
        assert one == [tokenizer.decode(ids), tokenizer.tokens(ids)], ids
