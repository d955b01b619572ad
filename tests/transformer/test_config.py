"""TransformerConfig: the three sizes, what is refused, and its way through JSON."""

import json

import pytest

from transformer import Transformer, TransformerConfig


def linear(inputs, outputs, bias=True):
    return inputs * outputs + (outputs if bias else 0)


def layers(d, d_ff, encoder, decoder, bias=True):
    """The parameters of both stacks' layers: four projections an attention, two norm vectors a residual."""
    attention = 4 * linear(d, d, bias)
    feed_forward = linear(d, d_ff, bias) + linear(d_ff, d, bias)
    norm = 2 * d
    return encoder * (attention + feed_forward + 2 * norm) + decoder * (2 * attention + feed_forward + 3 * norm)


def test_base_is_the_papers_base_model_and_the_others_follow_the_same_arithmetic():
    config = TransformerConfig.base(37_000, 37_000)
    assert config == TransformerConfig(
        37_000, 37_000, d_model=512, num_heads=8, d_ff=2048, num_encoder_layers=6, num_decoder_layers=6, dropout=0.1,
        norm="post", activation="relu", positions="sinusoidal", sinusoid_layout="interleaved", first_position=0,
        max_length=512, share_embeddings=True, tie_output=True)
    few = TransformerConfig.base(50, 50, num_encoder_layers=1, num_decoder_layers=1)  # post-norm: no final norms
    assert Transformer(few).num_parameters() == 50 * 512 + layers(512, 2048, 1, 1)
    tiny, small = TransformerConfig.tiny(14, 31), TransformerConfig.small(14, 31, dropout=0.0, norm="post")
    assert Transformer(tiny).num_parameters() == (14 + 31 + 31) * 64 + layers(64, 256, 2, 2) + 2 * 2 * 64
    assert Transformer(small).num_parameters() == (14 + 31 + 31) * 256 + layers(256, 1024, 3, 3)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"source_vocab_size": 0}, ValueError, "must be at least 1, got 0"),
        ({"d_model": 10, "num_heads": 4}, ValueError, r"\(10\) must be a multiple of num_heads \(4\)"),
        ({"d_model": 9, "num_heads": 3}, ValueError, "got 9"),
        ({"dropout": float("nan")}, ValueError, "got nan"),
        ({"norm": "middle"}, ValueError, "must be one of pre, post, got 'middle'"),
        ({"first_position": 2}, ValueError, "must be one of 0, 1, got 2"),
        ({"layer_norm_eps": 0.0}, ValueError, "must be positive"),
        ({"share_embeddings": True, "target_vocab_size": 12}, ValueError, "11 and 12"),
        ({"tie_output": True, "output_bias": True}, ValueError, "exclude each other"),
        ({"pad_id": 11}, ValueError, "below the vocabulary's size 11, got 11"),
        ({"d_model": 8.0}, TypeError, "must be of type int, got 8.0"),
        ({"num_heads": True}, TypeError, "must be of type int, got True"),
    ],
    ids=str,
)
def test_what_makes_no_model_is_refused_by_name(changes, error, message):
    options = {"source_vocab_size": 11, "target_vocab_size": 11, "d_model": 8, "num_heads": 2, **changes}
    with pytest.raises(error, match=message) as caught:
        TransformerConfig(**options)
    assert next(iter(changes)) in str(caught.value)


EVERY_OPTION = TransformerConfig(
    11, 12, d_model=9, num_heads=3, num_encoder_layers=0, num_decoder_layers=5, d_ff=7, dropout=0.25, norm="post",
    final_norm=True, activation="gelu_tanh", positions="learned", sinusoid_layout="halves", first_position=1,
    max_length=99, bias=False, norm_bias=False, output_bias=True, tie_output=False, share_embeddings=False,
    layer_norm_eps=1e-6, pad_id=3, bos_id=4, eos_id=5,
)  # fmt: skip


def test_through_json_and_back():
    values = EVERY_OPTION.to_json()
    assert TransformerConfig.from_json(json.loads(json.dumps(values))) == EVERY_OPTION
    with pytest.raises(ValueError, match=r"unknown entries \['depth'\]"):
        TransformerConfig.from_json({**values, "depth": 3})
    del values["target_vocab_size"]
    with pytest.raises(TypeError, match="target_vocab_size"):
        TransformerConfig.from_json(values)
    with pytest.raises(AttributeError):
        EVERY_OPTION.d_model = 3
