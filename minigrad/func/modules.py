"""`functional_call`: a module as a function of its parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from minigrad.device.local import Setting
from minigrad.nn.module import Module
from minigrad.tensor import Tensor, as_tensor

# The modules that are called here by `functional_call`, and the replacements of their own tensors, by the ids of these.
_replacements: ContextVar[tuple[tuple[Module, dict[int, Tensor]], ...]] = ContextVar("minigrad.func", default=())


def functional_call(module: Module, parameters: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """``module(*args, **kwargs)`` with other values for some of its parameters: the module as a function of them.

    Args:
        module: any module; afterwards it is as it was. Other threads that call it meanwhile see the replacements: give
            each thread its own copy.
        parameters: tensors or arrays by the names of ``module.named_parameters()`` and ``named_buffers()``, of their
            shapes; those not named are the module's own. What the module has under several names (tied) is replaced
            under all of them. A module that changes them in place changes what was given, as in any call.
        args, kwargs: for the module.

    Raises:
        ValueError: a name that the module does not have, another shape, or two values for what is tied.
    """
    own = dict([*module.named_buffers(False), *module.named_parameters(False)])
    given = dict[int, Tensor]()
    for name, value in parameters.items():
        if name not in own:
            raise ValueError(f"functional_call: {type(module).__name__} has no parameter {name!r}, nor a buffer")
        tensor = as_tensor(value)
        if tensor.shape != own[name].shape:
            raise ValueError(f"functional_call: {name!r} has shape {own[name].shape}, got {tensor.shape}")
        if given.setdefault(id(own[name]), tensor)._data is not tensor._data:
            raise ValueError(f"functional_call: {name!r} is tied, one tensor under two names, and got two values")
    with Setting(_replacements, lambda before: (*before, (module, given))), replaced():
        return module(*args, **kwargs)


@contextlib.contextmanager
def replaced() -> Iterator[None]:
    """A block in which the modules that `functional_call` calls here have their replacements, wherever they stand."""
    changed: list[Any] = []
    try:
        for module, given in _replacements.get():
            for child in module.modules():
                for name, value in list(vars(child).items()):
                    if id(value) in given:
                        changed.append((vars(child), name, value))
                        vars(child)[name] = given[id(value)]
        yield
    finally:
        for attributes, name, value in reversed(changed):
            attributes[name] = value
