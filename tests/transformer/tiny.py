"""A model small enough for finite differences, and a batch with unequal lengths and padding on both sides."""

import numpy as np

import minigrad

from transformer import Transformer, TransformerConfig

PAD, BOS, EOS = 0, 1, 2
VOCABULARY = 11

# Unequal lengths on both sides, and the sentence with the longer source has the shorter target.
SOURCE = np.array([[5, 3, 9, 7, EOS], [8, 4, EOS, PAD, PAD]])
LABELS = np.array([[6, 10, EOS, PAD], [9, 5, 7, EOS]])


def tiny_config(vocabulary=VOCABULARY, **changes):
    """One layer on each side, 8 features, 2 heads; dropout only where a test asks for it."""
    options = {
        "d_model": 8,
        "num_heads": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "d_ff": 12,
        "dropout": 0.0,
        "max_length": 12,
    }
    return TransformerConfig(vocabulary, vocabulary, **{**options, **changes})


def tiny_model(dtype=np.float64, device=None, **changes):
    """A model of `tiny_config`, drawn by a fixed seed; its biases and norms are moved off their zeros and ones."""
    with minigrad.random.fork(4):
        model = Transformer(tiny_config(**changes))
    jitter(model)
    return model.to(device, dtype)


def jitter(module, scale=0.1):
    """Add noise to every parameter, so that none stands at a value which hides an error."""
    rng = np.random.default_rng(8)
    for parameter in module.parameters():
        parameter.copy_(parameter.numpy() + scale * rng.standard_normal(parameter.shape))


def gradients(module):
    """The gradients by name, as copies on the host; every parameter must have one."""
    return {name: np.array(parameter.grad.numpy()) for name, parameter in module.named_parameters()}


def backward(module, loss):
    """Afresh: the gradients of ``loss()`` by name, with dropout masks that are the same at every call."""
    module.zero_grad()
    with minigrad.random.fork(6):
        loss().backward()
    return gradients(module)


def assert_same(actual, expected, tolerance=1e-12):
    """Two dictionaries of arrays, equal up to `tolerance` in proportion to the largest entry of each array."""
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        bound = tolerance * max(1e-3, abs(value).max(initial=0))
        np.testing.assert_allclose(actual[name], value, rtol=0, atol=bound, err_msg=name)
