"""Tensors that are filled: their values, dtypes and devices, and what a shape is not."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor


def assert_is(tensor, values, dtype, device="cpu"):
    assert (tensor.dtype, tensor.device, tensor.requires_grad) == (dtype, device, False)
    np.testing.assert_array_equal(tensor.numpy(), np.asarray(values, dtype))


def test_like_another(device):
    x = Tensor([[1, 2, 3]], dtype=np.int32, device=device)
    assert_is(mg.zeros_like(x), [[0, 0, 0]], np.int32, x.device)
    assert_is(mg.ones_like(x), [[1, 1, 1]], np.int32, x.device)
    assert_is(mg.full_like(x, 7), [[7, 7, 7]], np.int32, x.device)
    assert_is(mg.full_like(x, 0.5, dtype=np.float64), [[0.5, 0.5, 0.5]], np.float64, x.device)
    assert_is(mg.ones_like(x, device="cpu"), [[1, 1, 1]], np.int32, "cpu")
    assert_is(mg.zeros_like(np.ones((2, 0), np.float16)), np.zeros((2, 0)), np.float16)
    trained = Tensor([1.0, 2.0], requires_grad=True)
    assert not mg.zeros_like(trained).requires_grad
    assert mg.ones_like(trained, requires_grad=True).requires_grad


def test_eye_and_linspace(device):
    there = Tensor([1.0], device=device).device
    assert_is(mg.eye(3), np.eye(3), np.float32)
    assert_is(mg.eye(2, 3, dtype=np.int64, device=device), [[1, 0, 0], [0, 1, 0]], np.int64, there)
    assert_is(mg.linspace(0, 1, 5), [0, 0.25, 0.5, 0.75, 1], np.float32)
    assert_is(mg.linspace(2.0, -2.0, 3, dtype=np.float64, device=device), [2, 0, -2], np.float64, there)


@pytest.mark.parametrize("where", ["cuda:0", "cuda:1"])
def test_what_is_filled_is_made_where_it_will_be(stand_in, where):
    x = Tensor([1.0, 2.0], device=where)
    stand_in.clear()
    made = [mg.zeros((2, 3), device=where), mg.ones(4, np.int32, where), mg.full(2, 7.0, device=where, dtype=bool),
            mg.ones_like(x), mg.eye(3, device=where)]
    assert [tensor.device for tensor in made] == [where] * 5
    assert not stand_in.uploads
    assert_is(made[2], [True, True], bool, where)


@pytest.mark.parametrize("kind", [list, Tensor])
def test_filled_with_numbers_that_broadcast(kind, gpu):
    for where in ("cpu", gpu):
        made = mg.full((2, 3), kind([1.5, 2.5, 3.5]), device=where)
        assert_is(made, [[1.5, 2.5, 3.5]] * 2, np.float32, where)
        assert_is(mg.full_like(made, kind([1.5, 2.5, 3.5]), dtype=np.int64), [[1, 2, 3]] * 2, np.int64, where)
