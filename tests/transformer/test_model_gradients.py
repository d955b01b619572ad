"""The gradient of the whole sequence-to-sequence loss: finite differences, accumulation, steps, second order.

In every check: a batch of two sentences of unequal lengths, padding and causal masks, label smoothing, and dropout
switched on with masks that are drawn from the same keys at every evaluation.
"""

import contextlib
import functools

import pytest

import minigrad
from minigrad.engine.primitive import only_definitions
from minigrad.functional.activation import gelu_tanh
from minigrad.functional.attention import attention_of_heads
from minigrad.functional.dropout import dropout_with_mask
from minigrad.functional.embedding import lookup
from minigrad.functional.linear import linear
from minigrad.functional.loss import row_losses
from minigrad.functional.normalization import layer_norm

from tests.conftest import DEVICES
from tests.transformer.differences import check_gradients, check_hessian_vector_product, directions, one_direction
from tests.transformer.tiny import LABELS, SOURCE, assert_same, backward, tiny_model

THREE_WAY = {"share_embeddings": True, "tie_output": True}
MODELS = {
    "pre-norm, relu, nothing tied": {},
    "post-norm, gelu, three-way tied": {"norm": "post", "activation": "gelu", **THREE_WAY},
    "pre-norm, gelu_tanh, output tied, learned positions": {
        "activation": "gelu_tanh", "tie_output": True, "positions": "learned",
    },
    "post-norm with final norms, output bias, no other bias, halves from 1": {
        "norm": "post", "final_norm": True, "activation": "gelu", "bias": False, "output_bias": True,
        "sinusoid_layout": "halves", "first_position": 1,
    },
    "pre-norm, silu": {"activation": "silu"},
    "pre-norm without final norms, two decoder layers, three-way tied, learned positions": {
        "final_norm": False, "activation": "gelu", "num_decoder_layers": 2,
        "positions": "learned", **THREE_WAY,
    },
}  # fmt: skip
SMOOTH = {"activation": "gelu_tanh", "dropout": 0.2, **THREE_WAY}  # for what needs one model only, and no kinks


def loss_of(model):
    return lambda: model.loss(SOURCE, LABELS, label_smoothing=0.1)


def two_directions(gradient, rng):
    """The gradient's largest entry, and random signs everywhere."""
    return directions(gradient, rng, entries=0, dense=1)


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS.keys())
def test_the_loss_of_the_whole_model_has_the_gradient_of_finite_differences(options):
    model = tiny_model(dropout=0.2, **options)
    check_gradients(loss_of(model), dict(model.named_parameters()), two_directions)


@pytest.mark.parametrize("device", DEVICES[1:], indirect=True)
def test_on_every_device(device):
    """Of the encoder's parameters, whose gradients have come through everything else."""
    model = tiny_model(device=device, norm="post", **SMOOTH)
    parameters = {name: p for name, p in model.named_parameters() if name.startswith("encoder")}
    check_gradients(loss_of(model), parameters, one_direction)


# ------------------------------------------------------------------ the check itself can fail


def scaled(rule, position, factor):
    """`rule` with its result, or the one at `position` of a joint rule, wrong by `factor`."""

    @functools.wraps(rule)
    def wrong(*args):
        result = rule(*args)
        if position is None:
            return result * factor
        return tuple(r * factor if i == position and r is not None else r for i, r in enumerate(result))

    return wrong


def added_to(rule, factor):
    """An accumulating `rule` that adds a gradient which is wrong by `factor`."""

    @functools.wraps(rule)
    def wrong(buffer, g, *args):
        rule(buffer, g * factor, *args)

    return wrong


BROKEN = [
    *((attention_of_heads, position) for position in range(3)),
    *((layer_norm, position) for position in range(3)),
    (row_losses, 0),
    (linear, "input"), (linear, "weight"), (linear, "bias"),
    (gelu_tanh, "x"), (dropout_with_mask, "input"), (lookup, "weight"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "which"), BROKEN, ids=lambda value: getattr(value, "name", value))
def test_one_rule_that_is_a_little_wrong_is_found(operation, which, monkeypatch):
    model = tiny_model(**SMOOTH)
    for body in (operation, *operation.bodies.values()):
        break_rule(body, which, 0.999, monkeypatch)
    for bodies in (contextlib.nullcontext, only_definitions):
        with pytest.raises(AssertionError, match="the gradient is"), bodies():
            check_gradients(loss_of(model), dict(model.named_parameters()), two_directions)


def break_rule(body, which, factor, monkeypatch):
    """Make one rule of a body wrong by `factor`, and let it work out anew how it calls its rules."""
    monkeypatch.setattr(body, "plans", {})
    if isinstance(which, int):
        monkeypatch.setattr(body, "joint", scaled(body.joint, which, factor))
    elif which in body.adding:
        monkeypatch.setitem(body.adding, which, added_to(body.adding[which], factor))
    else:
        monkeypatch.setitem(body.rules, which, scaled(body.rules[which], None, factor))


# ------------------------------------------------------------------ steps, second order


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS.keys())
def test_fused_and_step_by_step_agree_in_value_and_all_gradients(options):
    model = tiny_model(dropout=0.2, **options)
    results = []
    for enabled in (True, False):
        with minigrad.fused(enabled), minigrad.random.fork(6):
            value = loss_of(model)().item()
            results.append((value, backward(model, loss_of(model))))
    (fused_value, fused_gradients), (value, by_steps) = results
    assert fused_value == pytest.approx(value, rel=1e-14)
    assert_same(fused_gradients, by_steps)


@pytest.mark.parametrize(("norm", "fused"), [("pre", True), ("post", False)])
def test_hessian_vector_product_of_the_whole_loss(norm, fused, device):
    model = tiny_model(device=device, norm=norm, **SMOOTH)
    with minigrad.fused(fused):
        check_hessian_vector_product(loss_of(model), dict(model.named_parameters()))
