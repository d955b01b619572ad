"""Layers made from sizes: the same as from a configuration with these values; errors."""

import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad import functional as F

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


def described(layer):
    """The options of a layer and of its parts, and the names of the parameters."""
    return [*layer.state_dict()], {
        path: {name: value for name, value in vars(module).items() if not isinstance(value, Tensor | nn.Module)}
        for path, module in layer.named_modules()}


@pytest.mark.parametrize("layer", TAKES)
@pytest.mark.parametrize("options", [SIZES, SIZES | OPTIONS], ids=["defaults", "every option"])
def test_values_by_name_are_those_of_a_configuration(layer, options):
    by_name = layer(**{name: options[name] for name in options.keys() & TAKES[layer]})
    for config in (TransformerConfig(9, 9, **options), LayerConfig(**options)):
        assert described(layer(config)) == described(by_name)


@pytest.mark.parametrize("layer", TAKES)
def test_an_option_that_a_layer_does_not_read_is_refused(layer):
    for name, value in {**SIZES, **OPTIONS, "heads": 2}.items():
        if name not in TAKES[layer]:
            with pytest.raises(TypeError, match=f"{layer.__name__}: there is no option {name}; the options are"):
                layer(**{**dict.fromkeys(SIZES.keys() & TAKES[layer], 8), name: value})


def test_a_mask_in_the_place_of_a_memory_is_refused():
    """It would not be looked at, and there would be no mask."""
    layer, mask = DecoderLayer(**SIZES, cross_attention=False), causal_mask(4)
    for given in (mask, Tensor(mask)):
        with pytest.raises(TypeError, match=r"layer\(x, mask=mask\)"):
            layer(Tensor(np.ones((2, 4, 8), np.float32)), given)


def test_an_activation_of_ones_own():
    assert FeedForward(d_model=8, d_ff=12, activation=F.gelu).activation is F.gelu
