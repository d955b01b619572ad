"""`functional_call`: a module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from minigrad.device import is_array
from minigrad.func.checkpointing import surroundings
from minigrad.nn.module import Module
from minigrad.tensor import Tensor, as_tensor


def functional_call(module: Module, parameters: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """``module(*args, **kwargs)`` with other values for some of its parameters: the module as a function of them.

    Args:
        module: any module; afterwards it is as it was. Other threads that call it meanwhile see the replacements: give
            each thread its own copy.
        parameters: tensors or arrays by the names of ``module.named_parameters()`` and ``named_buffers()``, of their
            shapes; those not named are the module's own. What the module has under several names (tied) is replaced
            under all of them. A module that changes them in place changes what was given, as in any call.
        args, kwargs: for the module. PyTorch's form, one tuple with all the positional arguments and perhaps a
            dictionary, is understood; a module that takes a tuple gets it in another: ``((a, b),)``.

    Raises:
        TypeError: a value that is neither a tensor nor an array.
        ValueError: a name that the module does not have, another shape, or two values for what is tied.
    """
    if args and isinstance(args[0], tuple) and (len(args) == 1 or (len(args) == 2 and isinstance(args[1], dict))):
        args, kwargs = args[0], {**kwargs, **dict(*args[1:])}
    replacements = _replacements(module, parameters)
    token = surroundings.set((*surroundings.get(), lambda: _replaced(module, replacements)))
    try:
        with _replaced(module, replacements):
            return module(*args, **kwargs)
    finally:
        surroundings.reset(token)


def _replacements(module: Module, values: Mapping[str, Any]) -> dict[int, Tensor]:
    """The new values by the ids of the module's own tensors; the errors of `functional_call`."""
    own: dict[str, Tensor] = dict(module.named_buffers(remove_duplicate=False))
    own.update(module.named_parameters(remove_duplicate=False))
    replacements: dict[int, Tensor] = {}
    given: dict[int, str] = {}  # a tensor of the module -> its name in `values`
    for name, value in values.items():
        if name not in own:
            raise ValueError(f"functional_call: {type(module).__name__} has no parameter {name!r}, nor a buffer")
        if not isinstance(value, Tensor) and not is_array(value):
            raise TypeError(f"functional_call: the value for {name!r} must be a tensor or an array, got "
                            f"{type(value).__name__}")
        if tuple(value.shape) != own[name].shape:
            raise ValueError(f"functional_call: {name!r} has shape {own[name].shape}, the tensor given for it "
                             f"{tuple(value.shape)}")
        key = id(own[name])
        if key in given and value is not values[given[key]]:
            raise ValueError(f"functional_call: {given[key]!r} and {name!r} are tied, one tensor under two names, and "
                             "got two values; give it under one of them")
        replacements[key], given[key] = as_tensor(value), name
    return replacements


@contextmanager
def _replaced(module: Module, replacements: Mapping[int, Any]) -> Iterator[None]:
    """The parameters and buffers with these ids replaced, wherever the tree has them."""
    changed = []
    for child in module.modules():
        for name, value in list(vars(child).items()):
            if id(value) in replacements:
                changed.append((vars(child), name, value))
                vars(child)[name] = replacements[id(value)]
    try:
        yield
    finally:
        for attributes, name, value in changed:
            attributes[name] = value
