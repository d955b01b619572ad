"""A traced model: two layers a side, unequal lengths and padding, dropout; and the loss that was traced."""

import numpy as np

import minigrad as mg

from tests.transformer.tiny import LABELS, SOURCE, tiny_config
from transformer import Transformer, trace

LAYERS = 2
NAMES = {  # in the order in which they run
    **{f"encoder.layers.{i}.self_attention": "encoder self" for i in range(LAYERS)},
    **{f"decoder.layers.{i}.{kind}_attention": {"self": "decoder self", "cross": "cross"}[kind]
       for i in range(LAYERS) for kind in ("self", "cross")},
}
KINDS = ["encoder.layers.0.self_attention", "decoder.layers.1.self_attention", "decoder.layers.1.cross_attention"]


def made(**changes):
    mg.manual_seed(3)
    options = {"num_encoder_layers": LAYERS, "num_decoder_layers": LAYERS, "dropout": 0.3} | changes
    return Transformer(tiny_config(**options)).to(dtype=np.float64)


def traced(model):
    def loss():
        return model.loss(SOURCE, LABELS, label_smoothing=0.1)

    mg.manual_seed(4)
    with trace(model) as t:
        loss().backward()
    return t, loss
