"""Models, and what is compared of them, for the tests of PyTorch's weights."""

import numpy as np

from transformer import Transformer, TransformerConfig


def make(**changes):
    options = {"d_model": 4, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 2, "d_ff": 3,
               "norm": "post", "final_norm": True, "output_bias": True, "positions": "learned", "max_length": 5}
    return Transformer(TransformerConfig(7, 7, **{**options, **changes}))


def snapshot(module):
    return {name: np.array(tensor.to("cpu").numpy()) for name, tensor in module.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def arrays(state):
    return {name: tensor.numpy() for name, tensor in state.items()}
