"""Names from PyTorch and NumPy: an AttributeError that says what they are called here, and nothing else changes."""

import copy
import importlib
import pkgutil
import re
import subprocess
import sys

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad.names import ELSEWHERE, missing


def said(owner, name):
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cat", "minigrad has no 'cat'; here it is minigrad.concatenate(tensors, axis)"),
        ("softmax", "minigrad has no 'softmax'; here it is minigrad.functional.softmax"),
        ("Linear", "minigrad has no 'Linear'; here it is minigrad.nn.Linear"),
        ("AdamW", "minigrad has no 'AdamW'; here it is minigrad.optim.AdamW"),
        ("jacobian", "minigrad has no 'jacobian'; here it is minigrad.func.jacobian"),
        ("memory_meter", "minigrad has no 'memory_meter'; here it is minigrad.inspect.memory_meter"),
        ("backward", "minigrad has no 'backward'; here it is .backward(…)"),
        ("nothing_like_it", "module 'minigrad' has no attribute 'nothing_like_it'"),
    ],
)
def test_a_missing_name_of_the_module(name, message):
    assert said(minigrad, name) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("view", "Tensor has no 'view'; here it is .reshape(shape)"),
        ("cuda", """Tensor has no 'cuda'; here it is .to("cuda")"""),
        ("einsum", "Tensor has no 'einsum'; here it is minigrad.einsum"),
        ("add_", "Tensor has no 'add_'; here it is x = x + y; what is recorded is not changed in place"),
        ("clamp_", "Tensor has no 'clamp_'; here it is x = x.clip(min, max); what is recorded is not changed in place"),
        ("exp_", "Tensor has no 'exp_'; here it is x = x.exp(…); what is recorded is not changed in place"),
        ("zero_", "Tensor has no 'zero_'; here it is x[...] = 0"),
        ("nothing_like_it", "'Tensor' object has no attribute 'nothing_like_it'"),
        ("nothing_", "'Tensor' object has no attribute 'nothing_'"),
        ("_view", "'Tensor' object has no attribute '_view'"),
    ],
)
def test_a_missing_attribute_of_a_tensor(name, message):
    assert said(Tensor([1.0]), name) == message


def test_a_parameter_says_what_it_is():
    assert said(nn.Parameter(np.ones(2, np.float32)), "view").startswith("Parameter has no 'view'")


@pytest.mark.parametrize("name", ELSEWHERE)
def test_every_name_is_missing_and_what_it_is_here_exists(name):
    assert not (hasattr(minigrad, name) and hasattr(Tensor, name)), "it exists: take it out of the table"
    here = ELSEWHERE[name]
    ours = re.findall(r"minigrad((?:\.\w+)+)", here)
    methods = re.findall(r"(?:^|x| )\.(\w+)", here)
    arrays = re.findall(r"numpy\.(\w+)", here)
    for path in ours:
        pkgutil.resolve_name(f"minigrad{path}")
    assert all(hasattr(Tensor, method) for method in methods)
    assert all(hasattr(np, dtype) for dtype in arrays)
    assert ours or methods or arrays or re.search(r"\b(x|module)\b", here), here


def test_protocols_still_find_what_is_not_there():
    x = Tensor([1.0, 2.0])
    assert not hasattr(x, "view")
    assert getattr(x, "cuda", None) is None
    assert not hasattr(minigrad, "cat")
    assert not hasattr(x, "__array_interface__")
    assert copy.deepcopy(x).tolist() == [1.0, 2.0]
    assert np.asarray(x).tolist() == [1.0, 2.0]
    with pytest.raises(ImportError, match="cat"):
        exec("from minigrad import cat")


def test_a_submodule_that_is_not_loaded_is_not_a_missing_name():
    assert missing("minigrad", "checkpoint") is None
    assert importlib.import_module("minigrad.checkpoint").__name__ == "minigrad.checkpoint"


def in_a_fresh_interpreter(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_nothing_is_loaded_before_a_name_is_missing():
    code = "import sys, minigrad; minigrad.Tensor([1.0]).exp(); print(*(m for m in sys.modules if 'minigrad' in m))"
    loaded = in_a_fresh_interpreter(code)
    assert "minigrad.tensor" in loaded
    assert not {"minigrad.names", "minigrad.nn", "minigrad.optim"} & set(loaded)


def test_some_modules_are_loaded_on_demand():
    code = "import minigrad as mg; print(mg.nn.Linear.__name__, mg.optim.Adam.__name__, mg.func.hvp.__name__)"
    assert in_a_fresh_interpreter(code) == ["Linear", "Adam", "hvp"]
