"""TransformerConfig: the three sizes, what is refused, and its way through JSON."""

import json
from dataclasses import fields

import pytest

from transformer import TransformerConfig


def test_base_is_the_papers_base_model():
    config = TransformerConfig.base(37_000, 37_000)
    assert config == TransformerConfig(
        37_000, 37_000, d_model=512, num_heads=8, d_ff=2048, num_encoder_layers=6, num_decoder_layers=6, dropout=0.1,
        norm="post", activation="relu", positions="sinusoidal", sinusoid_layout="interleaved", first_position=0,
        max_length=512, share_embeddings=True, tie_output=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_vocab_size": 0}, "must be at least 1, got 0"),
        ({"d_model": 10, "num_heads": 4}, r"\(10\) must be a multiple of num_heads \(4\)"),
        ({"d_model": 9, "num_heads": 3}, "got 9"),
        ({"dropout": float("nan")}, "got nan"),
        ({"norm": "middle"}, "must be one of pre, post, got 'middle'"),
        ({"first_position": 2}, "must be one of 0, 1, got 2"),
        ({"layer_norm_eps": 0.0}, "must be positive"),
        ({"share_embeddings": True, "target_vocab_size": 12}, "11 and 12"),
        ({"tie_output": True, "output_bias": True}, "exclude each other"),
        ({"pad_id": 11}, "below the vocabulary's size 11, got 11"),
        ({"d_model": 8.0}, "must be of type int, got 8.0"),
        ({"num_heads": True}, "must be of type int, got True"),
    ],
    ids=str,
)
def test_what_makes_no_model_is_refused_by_name(changes, message):
    options = {"source_vocab_size": 11, "target_vocab_size": 11, "d_model": 8, "num_heads": 2, **changes}
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        TransformerConfig(**options)
    assert next(iter(changes)) in str(caught.value)


def test_through_json_and_back():
    config = TransformerConfig.base(11, 12, share_embeddings=False)
    values = config.to_json()
    assert [*values] == [field.name for field in fields(config)]
    assert TransformerConfig.from_json(json.loads(json.dumps(values))) == config
    with pytest.raises(ValueError, match=r"unknown entries \['depth'\]"):
        TransformerConfig.from_json({**values, "depth": 3})
    del values["target_vocab_size"]
    with pytest.raises(TypeError, match="target_vocab_size"):
        TransformerConfig.from_json(values)
    with pytest.raises(AttributeError):
        config.d_model = 3
