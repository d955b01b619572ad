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
from minigrad import Tensor, checkpoint, func, nn, optim
from minigrad import functional as F
from minigrad.compat.names import CALLED, ELSEWHERE, IN, ON_MODULES, missing


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
        ("vmap", "minigrad has no 'vmap': operations broadcast, and einsum and @ know batches"),
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
        ("mH", "Tensor has no 'mH'; here it is .mT"),
        ("nothing_", "'Tensor' object has no attribute 'nothing_'"),
        ("_view", "'Tensor' object has no attribute '_view'"),
    ],
)
def test_a_missing_attribute_of_a_tensor(name, message):
    assert said(Tensor([1.0]), name) == message


def test_a_parameter_says_what_it_is():
    assert said(nn.Parameter(np.ones(2, np.float32)), "view").startswith("Parameter has no 'view'")


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (F, "pad", f"minigrad.functional has no 'pad'; here it is {IN['minigrad.functional']['pad']}"),
        (F, "exp", "minigrad.functional has no 'exp'; here it is minigrad.exp"),
        (F, "nothing_like_it", "module 'minigrad.functional' has no attribute 'nothing_like_it'"),
        (nn, "functional", "minigrad.nn has no 'functional'; here it is minigrad.functional"),
        (nn, "clip_grad_norm_", "minigrad.nn has no 'clip_grad_norm_'; here it is minigrad.optim.clip_grad_norm_"),
        (nn, "_private", "module 'minigrad.nn' has no attribute '_private'"),
        (optim, "StepLR", f"minigrad.optim has no 'StepLR'; here it is {ELSEWHERE['StepLR']}"),
        (func, "jacrev", "minigrad.func has no 'jacrev'; here it is minigrad.func.jacobian(function)"),
        (func, "vmap", "minigrad.func has no 'vmap': operations broadcast, and einsum and @ know batches"),
        (checkpoint, "save", f"minigrad.checkpoint has no 'save'; here it is {ELSEWHERE['save']}"),
    ],
)
def test_a_missing_name_of_a_namespace(module, name, message):
    assert said(module, name) == message


def all_that_a_table_names():
    owners = {**dict.fromkeys(ELSEWHERE, None), **{name: owner for owner, names in IN.items() for name in names}}
    return [(owner, name, IN[owner][name] if owner else ELSEWHERE[name]) for name, owner in owners.items()]


@pytest.mark.parametrize(("owner", "name", "here"), all_that_a_table_names())
def test_every_name_is_missing_and_what_it_is_here_exists(owner, name, here):
    if owner is None:
        assert not (hasattr(minigrad, name) and hasattr(Tensor, name)), "it exists: take it out of the table"
    else:
        assert not hasattr(importlib.import_module(owner), name), "it exists: take it out of the table"
    ours = re.findall(r"minigrad((?:\.\w+)+)", here)
    methods = re.findall(r"(?:^|x| )\.(\w+)", here)
    arrays = re.findall(r"numpy\.(\w+)", here)
    for path in ours:
        pkgutil.resolve_name(f"minigrad{path}")
    assert all(hasattr(Tensor, method) for method in methods)
    assert all(hasattr(np, dtype) for dtype in arrays)
    assert ours or methods or arrays or re.search(r"\b(x|module)\b", here), here


@pytest.mark.parametrize("name", ON_MODULES)
def test_what_a_module_of_pytorch_has(name):
    layer = nn.Linear(2, 2)
    assert said(layer, name) == f"Linear has no {name!r}; here it is {ON_MODULES[name]}"
    cast = re.fullmatch(r"\.to\(dtype=numpy\.(\w+)\)", ON_MODULES[name])
    if cast:
        assert layer.to(dtype=getattr(np, cast[1])).weight.dtype == cast[1]


def test_anything_else_that_a_module_lacks_is_told_by_python():
    class Broken(nn.Module):
        @property
        def size(self):
            return self.sizes

    assert said(Broken(), "nothing_like_it") == "'Broken' object has no attribute 'nothing_like_it'"
    assert said(Broken(), "size") == "'Broken' object has no attribute 'sizes'"
    assert not hasattr(nn.Linear(2, 2), "cuda")


@pytest.mark.parametrize(("name", "message"), [
    ("tensor", "minigrad.tensor is a module and cannot be called; here it is minigrad.Tensor(data)"),
    ("device", 'minigrad.device is a module and cannot be called; here it is a string: "cpu", "cuda" or "cuda:1"'),
    ("checkpoint", f"minigrad.checkpoint is a module and cannot be called; here it is {CALLED['minigrad.checkpoint']}"),
    ("autograd", "minigrad.autograd is a module and cannot be called"),
])
def test_a_module_that_is_called_as_a_function(name, message):
    with pytest.raises(TypeError) as caught:
        getattr(minigrad, name)([1.0, 2.0])
    assert str(caught.value) == message


@pytest.mark.parametrize("module", CALLED)
def test_what_is_called_instead_exists(module):
    for path in re.findall(r"minigrad[.\w]+", CALLED[module]):
        assert callable(pkgutil.resolve_name(path))


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
    assert not {"minigrad.compat.names", "minigrad.nn", "minigrad.optim"} & set(loaded)


def test_some_modules_are_loaded_on_demand():
    code = "import minigrad as mg; print(mg.nn.Linear.__name__, mg.optim.Adam.__name__, mg.func.hvp.__name__, "
    code += "mg.checkpoint.save_tensors.__name__)"
    assert in_a_fresh_interpreter(code) == ["Linear", "Adam", "hvp", "save_tensors"]
