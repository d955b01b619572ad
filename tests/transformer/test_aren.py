"""A real trained model, computed by another implementation: Arabic names in Latin letters, by CTranslate2.

The reference holds, for ten names, token ids, greedy and beam-4 outputs with their scores, and the logits of each step.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from transformer import Transformer, TransformerConfig
from transformer.decode import beam_search, greedy
from transformer.decode.search import Search

FOLDER = Path(__file__).parents[2].parent / "shared" / "models" / "aren"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the model {FOLDER.name} is not beside the repository")

TOLERANCE = 2e-5  # both sides compute in float32, in different orders
PAD, BOS = 0, 1
# What they call a part, and what it holds here, one above the other.
NAMES = dict(line.split(None, 1) for line in """\
self_attention/layer_norm self_attention_residual.norm
self_attention/linear_0   self_attention.query self_attention.key self_attention.value
self_attention/linear_1   self_attention.output
attention/layer_norm      cross_attention_residual.norm
attention/linear_0        cross_attention.query
attention/linear_1        cross_attention.key cross_attention.value
attention/linear_2        cross_attention.output
ffn/layer_norm            feed_forward_residual.norm
ffn/linear_0              feed_forward.inner
ffn/linear_1              feed_forward.outer
decoder/projection        projection
encoder/embeddings        encoder.embedding.table
decoder/embeddings        decoder.embedding.table
encoder/layer_norm        encoder.norm
decoder/layer_norm        decoder.norm
gamma                     weight
beta                      bias
""".splitlines())


def our_state(theirs):
    """The arrays of their checkpoint under the names of our `state_dict`."""
    ours = {}
    for name, array in theirs.items():
        stack, number, part, kind = re.fullmatch(r"(?:(\w+)/layer_(\d+)/)?(.+)/(\w+)", name).groups()
        parts = [f"{stack}.layers.{number}.{here}" if stack else here for here in NAMES[part].split()]
        ours |= {f"{here}.{NAMES.get(kind, kind)}": rows
                 for here, rows in zip(parts, np.split(array, len(parts)), strict=True)}
    return ours


@pytest.fixture(scope="module")
def cases():
    return json.loads((FOLDER / "reference.json").read_text(encoding="utf-8"))["cases"]


@pytest.fixture(scope="module")
def model():
    model = Transformer(TransformerConfig(
        51, 43, d_model=32, num_heads=8, num_encoder_layers=6, num_decoder_layers=6, d_ff=128,
        sinusoid_layout="halves", first_position=1, max_length=64, output_bias=True)).eval()
    with np.load(FOLDER / "aren.npz") as arrays:
        model.load_state_dict(our_state(arrays))
    return model


def test_logits(model, cases):
    for case in cases:
        logits = model([case["source_ids"]], [[BOS, *case["greedy_ids"]]]).numpy()[0]
        expected = np.array(case["greedy_logits"], np.float64)  # None, a token that was excluded there, becomes NaN
        assert np.isnan(expected).sum() <= 1
        known = ~np.isnan(expected)
        np.testing.assert_allclose(logits[known], expected[known], rtol=TOLERANCE, atol=TOLERANCE)


def test_greedy_and_beam_search(model, cases, monkeypatch):
    """All names in one batch; this model's sources do not end in end-of-sentence."""
    characters = json.loads((FOLDER / "reference.json").read_text(encoding="utf-8"))["target_vocab"]
    sources = np.full((len(cases), max(len(case["source_ids"]) for case in cases)), PAD)
    for row, case in zip(sources, cases, strict=True):
        row[:len(case["source_ids"])] = case["source_ids"]
    singles = greedy(model, sources)
    monkeypatch.setattr(Search, "score", lambda search, log_p, length: log_p / length)  # there scores are means
    found = zip(singles, beam_search(model, sources, 4, 2), cases, strict=True)
    for best, hypotheses, case in found:
        assert best.ids == case["greedy_ids"]
        assert best.log_probability / (len(best.ids) + 1) == pytest.approx(case["greedy_score"], abs=TOLERANCE)
        assert ["".join(characters[i] for i in hypothesis.ids) for hypothesis in hypotheses] == case["beam4"]
        np.testing.assert_allclose([h.score for h in hypotheses], case["beam4_scores"], rtol=0, atol=TOLERANCE)
        assert all(hypothesis.finished for hypothesis in (best, *hypotheses))
