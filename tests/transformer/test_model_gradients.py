"""The check of gradients in test_models.py can fail: one rule that is a little wrong is found."""

import contextlib
import functools

import pytest

from minigrad.engine.primitive import only_definitions
from minigrad.functional.attention import attention_of_heads
from minigrad.functional.dropout import dropout_with_mask
from minigrad.functional.embedding import lookup
from minigrad.functional.gelu import gelu_tanh
from minigrad.functional.linear import linear
from minigrad.functional.loss import row_losses
from minigrad.functional.normalization import layer_norm

from tests.transformer.differences import check_gradients, one_direction
from tests.transformer.tiny import LABELS, SOURCE, tiny_model

SMOOTH = {"activation": "gelu_tanh", "dropout": 0.2, "tie_output": True}  # no kinks


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
    for body in filter(None, (operation, operation.body)):
        break_rule(body, which, 0.999, monkeypatch)
    for bodies in (contextlib.nullcontext, only_definitions):
        with pytest.raises(AssertionError, match="the gradient is"), bodies():
            check_gradients(lambda: model.loss(SOURCE, LABELS, 0.1), dict(model.named_parameters()), one_direction)


def break_rule(body, which, factor, monkeypatch):
    """Make one rule of a body wrong by `factor`, and let it work out anew how it calls its rules."""
    monkeypatch.setattr(body, "plans", {})
    if isinstance(which, int):
        monkeypatch.setattr(body, "joint", scaled(body.joint, which, factor))
    elif which in body.adding:
        monkeypatch.setitem(body.adding, which, added_to(body.adding[which], factor))
    else:
        monkeypatch.setitem(body.rules, which, scaled(body.rules[which], None, factor))
