"""Names from PyTorch and NumPy: an AttributeError that says what they are called here, and nothing else changes."""

import copy
import importlib
import pkgutil
import re

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn, optim
from minigrad import functional as F
from minigrad.compat.names import CALLED, ELSEWHERE, IN, NOT_HERE, ON_MODULES, missing


def said(owner, name):
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    return str(caught.value)


@pytest.mark.parametrize(("name", "message"), [
    ("cat", "minigrad has no 'cat'; here it is minigrad.concatenate(tensors, axis)"),
    ("softmax", "minigrad has no 'softmax'; here it is minigrad.functional.softmax"),
    ("memory_meter", "minigrad has no 'memory_meter'; here it is minigrad.inspect.memory_meter"),
    ("vmap", "minigrad has no 'vmap': operations broadcast, and einsum and @ know batches"),
    ("nothing_like_it", "module 'minigrad' has no attribute 'nothing_like_it'"),
])
def test_a_missing_name_of_the_module(name, message):
    assert said(minigrad, name) == message


@pytest.mark.parametrize(("name", "message"), [
    ("view", "Tensor has no 'view'; here it is .reshape(shape)"),
    ("mH", "Tensor has no 'mH'; here it is .mT"),
    ("einsum", "Tensor has no 'einsum'; here it is minigrad.einsum"),
    ("exp_", "Tensor has no 'exp_'; here it is x = x.exp(…); what is recorded is not changed in place"),
    ("zero_", "Tensor has no 'zero_'; here it is x[...] = 0"),
    ("nothing_", "'Tensor' object has no attribute 'nothing_'"),
])
def test_a_missing_attribute_of_a_tensor(name, message):
    assert said(Tensor([1.0]), name) == message


@pytest.mark.parametrize(("owner", "name", "message"), [
    (nn, "Unfold", f"minigrad.nn has no 'Unfold'; here it is {IN['minigrad.nn']['Unfold']}"),
    (nn, "Conv2d", f"minigrad.nn has no 'Conv2d': {NOT_HERE['Conv2d']}"),
    (F, "conv2d", f"minigrad.functional has no 'conv2d': {NOT_HERE['conv2d']}"),
    (Tensor([1.0]), "to_sparse", f"Tensor has no 'to_sparse': {NOT_HERE['to_sparse']}"),
    (F, "nothing_like_it", "module 'minigrad.functional' has no attribute 'nothing_like_it'"),
    (nn, "Transformer", ("minigrad.nn has no 'Transformer'; here it is transformer.Transformer, and "
                         "transformer.interop loads its weights")),
    (optim, "StepLR", f"minigrad.optim has no 'StepLR'; here it is {ELSEWHERE['StepLR']}"),
    (nn.init, "normal", "minigrad.nn.init has no 'normal'; here it is minigrad.nn.init.normal_"),
    (nn.Module(), "device", f"Module has no 'device'; here it is {ON_MODULES['device']}"),
    (nn.Module(), "cuda", f"Module has no 'cuda'; here it is {ON_MODULES['cuda']}"),
    (nn.Module(), "nothing_like_it", "'Module' object has no attribute 'nothing_like_it'"),
])
def test_a_missing_name_of_a_namespace_or_of_a_module(owner, name, message):
    assert said(owner, name) == message


def test_every_name_is_missing_and_what_it_is_here_exists():
    for name in ELSEWHERE:
        assert not (hasattr(minigrad, name) and hasattr(Tensor, name)), f"{name} exists: take it out of the table"
    for owner, names in IN.items():
        assert not [name for name in names if hasattr(importlib.import_module(owner), name)], "they exist"
    for owner in (minigrad, nn, F, Tensor):
        assert not [name for name in NOT_HERE if hasattr(owner, name)], f"{owner} has them"
    for here in NOT_HERE.values():
        assert all(pkgutil.resolve_name(path) for path in re.findall(r"minigrad(?:\.\w+)+", here))
    for here in (text for names in (ELSEWHERE, ON_MODULES, *IN.values()) for text in names.values()):
        for path in re.findall(r"minigrad(?:\.\w+)+", here):
            pkgutil.resolve_name(path)
        assert all(hasattr(Tensor, method) for method in re.findall(r"(?:^|x| )\.(\w+)", here)), here
        assert all(hasattr(np, dtype) for dtype in re.findall(r"numpy\.(\w+)", here)), here


def test_a_property_that_fails_says_why_itself():
    class Model(nn.Module):
        @property
        def device(self):
            return self.nowhere

    with pytest.raises(AttributeError, match="nowhere"):
        _ = Model().device


def test_what_is_said_of_save_and_load_runs(tmp_path):
    module, other = nn.Linear(2, 3), nn.Linear(2, 3)
    names = {"minigrad": minigrad, "path": tmp_path / "file"}
    exec(ELSEWHERE["save"], {**names, "module": module})
    exec(ELSEWHERE["load"], {**names, "module": other})
    assert np.array_equal(module.weight.numpy(), other.weight.numpy())


def test_a_module_that_is_called_as_a_function():
    here = CALLED["minigrad.tensor"]
    with pytest.raises(TypeError, match=re.escape("minigrad.tensor is a module") + ".*" + re.escape(here)):
        minigrad.tensor([1.0, 2.0])


def test_protocols_still_find_what_is_not_there():
    x = Tensor([1.0, 2.0])
    assert [hasattr(x, "view"), hasattr(minigrad, "cat"), hasattr(x, "__array_interface__")] == [False] * 3
    assert copy.deepcopy(x).tolist() == np.asarray(x).tolist() == [1.0, 2.0]
    with pytest.raises(ImportError, match="cat"):
        exec("from minigrad import cat")
    assert missing("minigrad", "checkpoint") is None  # a submodule, which an import may be about to load
