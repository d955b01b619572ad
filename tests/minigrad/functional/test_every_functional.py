"""What holds for every row of the table: one operation equals its own steps, and both their finite differences."""

import re

import numpy as np
import pytest

from minigrad import Tensor, functional, fused, grad
from minigrad.gradcheck import gradcheck, gradgradcheck

from tests.minigrad.conftest import GPUS
from tests.minigrad.functional.table import CASES, NAMES, Case

# What needs no row here: operations, which have a table of their own, and indices.
ELSEWHERE = {"relu", "sigmoid", "tanh", "dropout", "one_hot"}

every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def test_every_functional_has_a_row():
    words = set(re.findall(r"\w+", " ".join(case.name for case in CASES)))
    called = {function.__name__ for name, function in NAMES.items() if name in words and callable(function)}
    assert called >= set(functional.__all__) - ELSEWHERE


def weights(shape):
    return np.random.default_rng(17).normal(size=shape)


def derivatives(case: Case, inputs: list[Tensor]) -> list[np.ndarray]:
    """The value, the gradient by `backward`, that by `grad`, and the gradient of a function of the gradient.

    The first input is an intermediate: nodes of an expansion are on a path that was found before they existed.
    """
    inputs = [inputs[0] * 1, *inputs[1:]]
    inputs[0].retain_grad()
    out = case.function(*inputs)
    start = Tensor(weights(out.shape), dtype=out.dtype, device=out.device)
    out.backward(start, retain_graph=True)
    assert all((x.grad.requires_grad, x.grad.device) == (False, x.device) for x in inputs)
    found = [out, *[x.grad for x in inputs]]
    first = grad(out, inputs, start, create_graph=True)
    found += first
    total = sum((g * Tensor(weights(g.shape), dtype=g.dtype, device=g.device)).sum() for g in first)
    total = total + (out * out).sum()
    found += grad(total, inputs)
    return [t.numpy() for t in found]


@every_case
def test_one_operation_equals_its_steps(case, device):
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        ours = derivatives(case, case.inputs(dtype, device))
        with fused(False):
            theirs = derivatives(case, case.inputs(dtype, device))
        for one, other in zip(ours, theirs, strict=True):
            assert one.shape == other.shape
            assert one.dtype == other.dtype == dtype
            scale = np.abs(other).max(initial=1.0)
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


def with_its_tier(case):
    """The differences of large rows take most of the time; all rows are held to their compositions."""
    large = sum(x.size for x in case.host_inputs()) > 80
    return pytest.param(case, id=case.name, marks=[pytest.mark.slow] if large else [])


@pytest.mark.parametrize("case", [with_its_tier(case) for case in CASES if "padding" not in case.name])
def test_first_and_second_derivatives_against_finite_differences(case, computing_device):
    inputs = case.inputs(device=computing_device)
    gradcheck(case.function, inputs)
    gradgradcheck(case.function, inputs)


@every_case
@pytest.mark.parametrize("gpu", GPUS[1:], indirect=True)
def test_results_on_a_gpu_equal_the_hosts(case, gpu):
    """On one that is not the current device; that the current one computes the same is tested with the steps."""
    here, there = derivatives(case, case.inputs()), derivatives(case, case.inputs(device=gpu))
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@every_case
def test_dtypes(case):
    """They are kept; integers give float32; of several floating ones the widest wins; gradients go back."""
    linear = case.name.startswith(("embedding", "linear"))  # these are defined on integers
    integers, exact = [Tensor(np.ones(shape, np.int64)) for shape in case.shapes], case.function(*case.inputs()).numpy()
    first, *others = case.inputs()
    mixed = [first.astype(np.float32), *others]
    for enabled in (True, False):
        with fused(enabled):
            assert case.function(*integers).dtype == (np.int64 if linear else np.float32)
            for inputs, dtype in ((case.inputs(np.float16), np.float16), (case.inputs(np.float32), np.float32),
                                  (mixed, np.float64 if others else np.float32)):
                out, tolerance = case.function(*inputs), 2e-2 if dtype == np.float16 else 1e-5
                assert out.dtype == dtype
                np.testing.assert_allclose(out.numpy(), exact, rtol=tolerance, atol=tolerance)
                assert [g.dtype for g in grad(out.sum(), inputs)] == [x.dtype for x in inputs]
