"""Every row of docs/coming_from_pytorch.md: our cell runs, and where PyTorch is installed, both give the same."""

import importlib.util
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import minigrad
from minigrad import func, nn, optim

PAGE = Path(__file__).parents[1] / "docs/coming_from_pytorch.md"
has_pytorch = importlib.util.find_spec("torch") is not None


def rows():
    """(PyTorch's cell, ours) of every row whose first two cells are code."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|.*\|$", text, flags=re.MULTILINE)


def arrays():
    draw = np.random.default_rng(0)
    shapes = {"x": (2, 3), "y": (2, 3), "v": (3,), "q": (2, 5, 4), "k": (2, 5, 4), "s": (2, 5, 4)}
    found = {name: draw.uniform(0.1, 0.9, size=shape).astype(np.float32) for name, shape in shapes.items()}
    found["labels"] = np.array([2, 0])
    found["m"] = np.array([[True, False, True], [False, True, True]])
    found["mask"] = draw.random((5, 5)) < 0.6
    found["mask"][:, 0] = True
    return found


def cube(x):
    return (x * x * x).sum()


def result_of(code, namespace, tensor, parameter):
    """The value of a cell; every array that it may use is given as a tensor, the floating ones requiring gradients."""
    given = {name: tensor(array, requires_grad=array.dtype.kind == "f") for name, array in arrays().items()}
    namespace |= {"np": np, "array": arrays()["x"], "p": parameter(tensor(arrays()["v"])), "f": cube, **given}
    exec(f"result = ({code})", namespace)
    return namespace["result"]


def ours(code):
    namespace = {"mg": minigrad, "nn": nn, "F": minigrad.functional, "func": func, "optim": optim}
    with minigrad.random.fork(0):
        return result_of(code, namespace, minigrad.Tensor, nn.Parameter)


def pytorchs(code):
    import torch
    import torch.utils.checkpoint  # not loaded by torch itself

    namespace = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "optim": torch.optim}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PyTorch's transforms warn of its own functions
        return result_of(code, namespace, torch.tensor, torch.nn.Parameter)


def plain(value):
    """A result without its library: arrays, numbers, strings, and sequences of them."""
    if hasattr(value, "detach"):
        return value.detach().numpy()
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if type(value).__name__ in ("dtype", "type") or isinstance(value, np.dtype):
        return str(value).removeprefix("torch.")
    return value


def assert_same(ours, theirs):
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_same(our, their)
    elif isinstance(theirs, np.ndarray):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-7)
    else:
        assert type(ours) is type(theirs)
        assert ours == (pytest.approx(theirs, rel=2e-6) if isinstance(theirs, float) else theirs)


ROWS = rows()


@pytest.mark.parametrize(("theirs", "here"), ROWS, ids=[here for _, here in ROWS])
def test_our_cell_runs_and_gives_what_pytorchs_gives(theirs, here):
    result = plain(ours(here))
    assert result is not None
    if has_pytorch:
        assert_same(result, plain(pytorchs(theirs)))
