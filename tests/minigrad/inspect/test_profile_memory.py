"""profile: the bytes that operations and their rules made, by arithmetic."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Saved, inspect, nn, primitive
from minigrad.func import checkpoint

from tests.minigrad.inspect.programs import leaf


@primitive(composite=True)
def centred(x, w):
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) * w, Saved(mean=mean)


@centred.joint_gradient("x", "w")
def centred_gradient(g, x, w, saved):
    # forward: d = x − mean; out = d · w        so here: dw = Σ g d, dd = g w, dx = dd − mean of dd
    inner = g * w
    return inner - inner.mean(axis=-1, keepdims=True), (g * (x - saved.mean)).sum(axis=0)


@pytest.mark.parametrize(
    ("program", "shapes", "expected"),
    [
        # an array each; the gradient of a sum with equal shapes is its own, twice
        (lambda x, y: x + y, [(4, 5), (4, 5)], {"add": (160, 0)}),
        # of the broadcast factor what remains when it is summed
        (lambda x, y: x * y, [(4, 5), (5,)], {"mul": (160, 160 + 40)}),
        # views, both ways
        (lambda x: x.reshape(2, 10)[:, None], [(4, 5)], {"reshape": (0, 0), "getitem": (0, 160)}),
        # what reshapes a transposed array copies it
        (lambda x: x.T.reshape(20), [(4, 5)], {"transpose": (0, 0), "reshape": (160, 0)}),
        # the output is saved, and counts once
        (mg.exp, [(4, 5)], {"exp": (160, 160)}),
        # a buffer of the whole, which the second slice adds into
        (lambda x: x[:1] + x[1:2], [(4, 5)], {"getitem": (0, 160), "add": (40, 0)}),
        # the output, and what is saved beside it: a number of each row; a gradient of each input
        (centred, [(4, 5), (5,)], {"centred": (160 + 4 * 8, 160 + 40)}),
        # of what is not recorded the output alone stays
        (mg.no_grad()(centred), [(4, 5), (5,)], {"centred": (160, 0)}),
        # twice the forward of what is inside: of the first run nothing stays, but it was made
        (lambda x: checkpoint(mg.exp, x), [(4, 5)], {"exp": (320, 160), "checkpoint": (0, 0), "gate": (0, 0)}),
    ],
)
def test_bytes_by_hand(program, shapes, expected, device):
    leaves = [leaf(*shape, device=device) for shape in shapes]
    with mg.profile() as profile:
        out = program(*leaves)
        if out.requires_grad:
            out.backward(mg.ones(out.shape, dtype=out.dtype, device=device))
    rows = profile.operations
    assert {name: (row.forward_bytes, row.backward_bytes) for name, row in rows.items()} == expected
    assert profile.bytes == sum(map(sum, expected.values()))


def test_bytes_of_modules_and_spans_have_those_of_what_is_in_them():
    model = nn.Sequential(nn.Linear(5, 3, bias=False), nn.ReLU())
    with mg.profile(model.to(dtype=np.float64)) as profile:
        with inspect.span("forward"):
            out = model(leaf(4, 5))
        out.backward(np.ones((4, 3)))
    linear = 4 * 3 * 8 + (4 * 5 + 3 * 5) * 8
    relu = 4 * 3 * 8 * 2
    assert {path: row.bytes for path, row in profile.modules.items()} == {
        "Sequential": linear + relu, "0": linear, "1": relu}
    assert (profile.named["forward"].bytes, profile.bytes) == (2 * 4 * 3 * 8, linear + relu)
