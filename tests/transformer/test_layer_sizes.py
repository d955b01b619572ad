"""Layers made from sizes: the same as from a configuration with these values; decoders without encoder; errors."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad import functional as F

from tests.transformer.tiny import jitter
from transformer import DecoderLayer, EncoderLayer, FeedForward, LayerConfig, Residual, TransformerConfig, causal_mask

SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 12}
# No value is the default.
OPTIONS = {"dropout": 0.3, "norm": "post", "activation": "silu", "bias": False, "norm_bias": False,
           "layer_norm_eps": 0.01}
TAKES = {
    EncoderLayer: {*SIZES, *OPTIONS}, DecoderLayer: {*SIZES, *OPTIONS},
    FeedForward: {"d_model", "d_ff", "activation", "dropout", "bias"},
    Residual: {"d_model", "norm", "dropout", "norm_bias", "layer_norm_eps"},
}


def drawn(make):
    with minigrad.random.fork(3):
        return make()


def described(layer):
    """Every value of a layer and of its parts: parameters, and the options that are no parameters."""
    options = {path: {name: value for name, value in vars(module).items() if not isinstance(value, Tensor | nn.Module)}
               for path, module in layer.named_modules()}
    return options, {name: tensor.numpy().tolist() for name, tensor in layer.state_dict().items()}


@pytest.mark.parametrize("layer", TAKES)
@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["defaults", "every option"])
def test_values_by_name_are_those_of_a_configuration(layer, options):
    options = {**SIZES, **options}
    by_name = described(drawn(lambda: layer(**{name: options[name] for name in options.keys() & TAKES[layer]})))
    for config in (TransformerConfig(9, 9, **options), LayerConfig(**options)):
        assert described(drawn(lambda config=config: layer(config))) == by_name


@pytest.mark.parametrize("layer", TAKES)
def test_an_option_that_a_layer_does_not_read_is_refused(layer):
    for name, value in {**SIZES, **OPTIONS, "heads": 2}.items():
        if name not in TAKES[layer]:
            with pytest.raises(TypeError, match=f"{layer.__name__}: there is no option {name}; the options are"):
                layer(**{**dict.fromkeys(SIZES.keys() & TAKES[layer], 8), name: value})


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_layer_without_cross_attention_is_an_encoder_layer_under_a_causal_mask(norm):
    layer, encoder = (kind(**SIZES, norm=norm, dropout=0.0, **options).to(dtype=np.float64)
                      for kind, options in ((DecoderLayer, {"cross_attention": False}), (EncoderLayer, {})))
    jitter(layer)
    encoder.load_state_dict(layer.state_dict())  # with no other names
    x, memory = (Tensor(np.random.default_rng(length).standard_normal((2, length, 8))) for length in (4, 5))
    mask = causal_mask(4)
    for out in (layer(x, mask=mask), layer(x, memory, mask)):  # as in a Decoder
        np.testing.assert_array_equal(out.numpy(), encoder(x, mask).numpy())
    for given in (mask, Tensor(mask)):  # as a memory it would not be looked at: there would be no mask
        with pytest.raises(TypeError, match=r"layer\(x, mask=mask\)"):
            layer(x, given)


def test_an_activation_of_ones_own():
    named, function = (drawn(lambda kind=kind: FeedForward(d_model=8, d_ff=12, dropout=0.0, activation=kind))
                       for kind in ("gelu", F.gelu))
    x = Tensor(np.ones((2, 3, 8), np.float32))
    np.testing.assert_array_equal(named(x).numpy(), function(x).numpy())
