"""TransformerConfig: what is refused, and its way through JSON."""

import json

import pytest

from transformer import TransformerConfig


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_vocab_size": 0}, "must be at least 1, got 0"),
        ({"d_model": 10, "num_heads": 4}, r"\(10\) must be a multiple of num_heads \(4\)"),
        ({"d_model": 9, "num_heads": 3}, "need an even d_model, got 9"),
        ({"dropout": float("nan")}, "got nan"),
        ({"norm": "middle"}, "must be one of pre, post, got 'middle'"),
        ({"layer_norm_eps": 0.0}, "must be positive"),
        ({"share_embeddings": True, "target_vocab_size": 12}, "11 and 12"),
        ({"tie_output": True, "output_bias": True}, "exclude each other"),
        ({"pad_id": 11}, "below the vocabulary's size 11, got 11"),
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
    assert TransformerConfig(**json.loads(json.dumps(vars(config)))) == config
