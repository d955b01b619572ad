"""A real trained model, computed by another implementation: Arabic names in Latin letters, by CTranslate2.

The reference holds, for ten names, token ids, greedy and beam-4 outputs with their scores, and the logits of each step.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transformer import Transformer, TransformerConfig
from transformer.decode import beam_search, greedy

FOLDER = Path(__file__).parents[2].parent / "shared" / "models" / "aren"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the model {FOLDER.name} is not beside the repository")

TOLERANCE = 2e-5  # both sides compute in float32, in different orders
PAD, BOS, EOS = 0, 1, 2


def our_state(theirs: dict[str, np.ndarray], num_layers: int) -> dict[str, np.ndarray]:
    """The arrays of their checkpoint under the names of our `state_dict`."""
    ours: dict[str, np.ndarray] = {}

    def linear(name: str, *packed: str) -> None:
        """Their layer `name` holds our layers `packed`, one above the other."""
        for kind in ("weight", "bias"):
            parts = np.split(theirs[f"{name}/{kind}"], len(packed))
            ours.update({f"{layer}.{kind}": part for layer, part in zip(packed, parts, strict=True)})

    def norm(name: str, our_name: str) -> None:
        ours[f"{our_name}.weight"], ours[f"{our_name}.bias"] = theirs[f"{name}/gamma"], theirs[f"{name}/beta"]

    for stack in ("encoder", "decoder"):
        ours[f"{stack}.embedding.table.weight"] = theirs[f"{stack}/embeddings/weight"]
        norm(f"{stack}/layer_norm", f"{stack}.norm")
        for i in range(num_layers):
            their_layer, our_layer = f"{stack}/layer_{i}", f"{stack}.layers.{i}"
            attention = f"{our_layer}.self_attention"
            norm(f"{their_layer}/self_attention/layer_norm", f"{attention}_residual.norm")
            linear(f"{their_layer}/self_attention/linear_0",
                   f"{attention}.query", f"{attention}.key", f"{attention}.value")
            linear(f"{their_layer}/self_attention/linear_1", f"{attention}.output")
            if stack == "decoder":
                attention = f"{our_layer}.cross_attention"
                norm(f"{their_layer}/attention/layer_norm", f"{attention}_residual.norm")
                linear(f"{their_layer}/attention/linear_0", f"{attention}.query")
                linear(f"{their_layer}/attention/linear_1", f"{attention}.key", f"{attention}.value")
                linear(f"{their_layer}/attention/linear_2", f"{attention}.output")
            norm(f"{their_layer}/ffn/layer_norm", f"{our_layer}.feed_forward_residual.norm")
            linear(f"{their_layer}/ffn/linear_0", f"{our_layer}.feed_forward.inner")
            linear(f"{their_layer}/ffn/linear_1", f"{our_layer}.feed_forward.outer")
    linear("decoder/projection", "projection")
    return ours


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return json.loads((FOLDER / "reference.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def theirs() -> dict[str, np.ndarray]:
    with np.load(FOLDER / "aren.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def model(theirs: dict[str, np.ndarray]) -> Transformer:
    config = TransformerConfig(
        source_vocab_size=51, target_vocab_size=43, d_model=32, num_heads=8, num_encoder_layers=6, num_decoder_layers=6,
        d_ff=128, norm="pre", activation="relu", sinusoid_layout="halves", first_position=1, max_length=64, bias=True,
        output_bias=True, layer_norm_eps=1e-5, pad_id=PAD, bos_id=BOS, eos_id=EOS)
    model = Transformer(config).eval()
    model.load_state_dict(our_state(theirs, num_layers=6))
    return model


def sources(reference: dict[str, Any]) -> np.ndarray:
    """All names in one batch, padded; this model's sources do not end in end-of-sentence."""
    rows = [case["source_ids"] for case in reference["cases"]]
    padded = np.full((len(rows), max(map(len, rows))), PAD)
    for row, ids in zip(padded, rows, strict=True):
        row[:len(ids)] = ids
    return padded


def test_logits(model, reference):
    for case in reference["cases"]:
        logits = model([case["source_ids"]], [[BOS, *case["greedy_ids"]]]).numpy()[0]
        expected = np.array(case["greedy_logits"], np.float64)  # None, a token that was excluded there, becomes NaN
        assert np.isnan(expected).sum() <= 1
        known = ~np.isnan(expected)
        np.testing.assert_allclose(logits[known], expected[known], rtol=TOLERANCE, atol=TOLERANCE)


def test_greedy(model, reference):
    for found, case in zip(greedy(model, sources(reference)), reference["cases"], strict=True):
        assert found.finished
        assert found.ids == case["greedy_ids"]
        length = len(found.ids) + 1
        assert found.log_probability / length == pytest.approx(case["greedy_score"], abs=TOLERANCE)


def test_beam_search(model, reference):
    characters = reference["target_vocab"]
    found = beam_search(model, sources(reference), beam_size=4, num_best=2, length_penalty="mean")
    for hypotheses, case in zip(found, reference["cases"], strict=True):
        assert ["".join(characters[i] for i in hypothesis.ids) for hypothesis in hypotheses] == case["beam4"]
        np.testing.assert_allclose([h.score for h in hypotheses], case["beam4_scores"], rtol=0, atol=TOLERANCE)
        assert all(hypothesis.finished for hypothesis in hypotheses)
