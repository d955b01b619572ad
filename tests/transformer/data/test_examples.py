"""Examples: the token ids of `encode_pairs`."""

import zlib
from itertools import chain
from unittest.mock import patch

import numpy as np
import pytest

from transformer.data import examples as module
from transformer.data.batches import encode_pairs
from transformer.data.examples import Examples
from transformer.data.tokenizer import WordTokenizer

PAIRS = [("a b c", "x"), ("", "y x y"), ("c " * 300, ""), ("b", "z x")] * 50
TOKENIZERS = WordTokenizer.train(["a b c"]), WordTokenizer.train(["x y"])


def checksum(examples):
    """As it was first defined: the CRC-32 of the length and the ids of each side, int64."""
    parts = ((len(ids), *ids) for example in examples for ids in example)
    return zlib.crc32(np.fromiter(chain.from_iterable(parts), "<i8").tobytes())


def test_they_are_those_of_encode_pairs(monkeypatch):
    """Each pair is encoded once."""
    monkeypatch.setattr(module, "_CHUNK", 7)
    expected = encode_pairs(PAIRS, *TOKENIZERS)
    with patch.object(module, "encode_pairs", wraps=encode_pairs) as encode:
        examples = Examples(PAIRS, *TOKENIZERS, limit=64)
        assert list(examples) == expected
        assert [examples[-1], examples[3]] == [expected[-1], expected[3]]
        assert encode.call_count == 29  # of 7 each
    assert examples.source_lengths.tolist() == [len(source) for source, _ in expected]
    assert examples.steps.tolist() == [len(target) + 1 for _, target in expected]
    assert examples.checksum == checksum(expected)
    assert Examples(PAIRS[:5], *TOKENIZERS, 400, examples.checksum).checksum == checksum(expected + expected[:5])
    assert examples.too_long[:4].tolist() == [False, False, True, False]
    assert len(Examples([], *TOKENIZERS, limit=3)) == 0
    assert Examples(PAIRS, *TOKENIZERS, limit=3).too_long[:4].tolist() == [True, True, True, False]
    with pytest.raises(IndexError):
        examples[len(PAIRS)]
