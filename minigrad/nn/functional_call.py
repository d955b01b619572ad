"""A module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from minigrad.nn.module import Module
from minigrad.recompute import surroundings


def functional_call(module: Module, parameters: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """``module(*args, **kwargs)`` with other values for some of its parameters: the module as a function of them.

    Args:
        module: any module; afterwards it is as it was.
        parameters: tensors by the names of ``module.named_parameters()``, of the parameters' shapes; those not named
            are the module's own. A parameter that the module has under several names (tied) is replaced under all.

    Raises:
        ValueError: a name that the module does not have, or another shape.
    """
    own = dict(module.named_parameters(remove_duplicate=False))
    for name, value in parameters.items():
        if name not in own:
            raise ValueError(f"functional_call: {type(module).__name__} has no parameter {name!r}")
        if tuple(value.shape) != own[name].shape:
            raise ValueError(f"functional_call: parameter {name!r} has shape {own[name].shape}, the tensor given for "
                             f"it {tuple(value.shape)}")
    replacements = {id(own[name]): value for name, value in parameters.items()}
    token = surroundings.set((*surroundings.get(), lambda: _replaced(module, replacements)))
    try:
        with _replaced(module, replacements):
            return module(*args, **kwargs)
    finally:
        surroundings.reset(token)


@contextmanager
def _replaced(module: Module, replacements: Mapping[int, Any]) -> Iterator[None]:
    """The parameters with these ids replaced, wherever the tree has them."""
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
