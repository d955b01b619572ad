"""Reading and writing at places, against NumPy for any index that hypothesis finds; and indices in every form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import host, normal


@settings(derandomize=True, database=None, deadline=None, max_examples=100)
@given(st.data(), array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=3))
def test_any_mixture(data, shape):
    """Each axis by a number, a slice or an array of two places; here and there a new axis, at most one Ellipsis."""
    parts = []
    for n in shape:
        place = st.integers(-n, n - 1)
        slices = st.slices(n)
        several = st.lists(place, min_size=2, max_size=2).map(np.array)
        parts.append(data.draw(st.one_of(place, slices, several)))
    if data.draw(st.booleans()):
        parts.insert(data.draw(st.integers(0, len(parts))), None)
    if data.draw(st.booleans()):
        parts[data.draw(st.integers(0, len(parts) - 1))] = Ellipsis
    index, x = tuple(parts), normal(*shape)
    tensor = Tensor(x, requires_grad=True)
    out = tensor[index]
    np.testing.assert_array_equal(host(out), x[index])
    g = normal(*out.shape, seed=1)
    added = np.zeros(shape)
    np.add.at(added, index, g)
    first = mg.grad(out, tensor, g, retain_graph=True)
    recorded = mg.grad(out, tensor, Tensor(g, requires_grad=True), create_graph=True)
    for found in (first, recorded):
        np.testing.assert_allclose(host(found), added, rtol=1e-14, atol=1e-15)


def test_an_index_whose_dtype_cannot_count_the_rows():
    x = Tensor(np.zeros((200, 3)), requires_grad=True)
    x[np.array([-1, 0, -1], np.int8)].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[[0, 1, 199], 0], [1, 0, 2])


@pytest.mark.parametrize("index", [[], [[]], ([], [[]]), (slice(None), [[]])])
def test_an_empty_list_names_no_place(index, device):
    x = Tensor(normal(4, 3), device=device)
    before = host(x).copy()
    x[index] = 7.0
    np.testing.assert_array_equal(host(x), before)
