"""Writes the API reference, HTML from the docstrings, by pdoc: python docs/make_api.py docs/api

It needs the `docs` extra, and no network, neither now nor when the pages are read. Two things of minigrad are shown
as what they are to a reader, which pdoc could not know: a primitive as the function that it wraps, and the methods
that Tensor has from its parts as methods of Tensor. That is done to the modules in memory, before pdoc looks at them.
"""

import importlib
import inspect
import sys
import types
from pathlib import Path

import pdoc

import minigrad
from minigrad import Tensor
from minigrad.engine.primitive import Primitive

NAMESPACES = (
    *("minigrad", "minigrad.functional", "minigrad.func", "minigrad.inspect", "minigrad.nn", "minigrad.nn.init"),
    *("minigrad.optim", "minigrad.random", "minigrad.checkpoint", "minigrad.device"),
    *("transformer", "transformer.model", "transformer.data", "transformer.decode", "transformer.training"),
    "transformer.interop",
)


def gradient_of(primitive: Primitive) -> str:
    """A sentence about the gradient of an operation."""
    if not primitive.inputs:
        return "*Has no gradient.*"
    return f"*A primitive, with a gradient rule for {' and '.join(f'`{name}`' for name in primitive.inputs)}.*"


def as_function(primitive: Primitive) -> types.FunctionType:
    """The function that a primitive wraps, with a sentence on its gradient in the docstring."""
    forward = primitive.forward
    function = types.FunctionType(forward.__code__, forward.__globals__, forward.__name__, forward.__defaults__,
                                  forward.__closure__)
    function.__kwdefaults__, function.__annotations__ = forward.__kwdefaults__, forward.__annotations__
    function.__module__, function.__qualname__ = forward.__module__, forward.__qualname__
    function.__doc__ = f"{forward.__doc__}\n\n{gradient_of(primitive)}" if forward.__doc__ else None
    return function


def prepare(names: tuple[str, ...]) -> None:
    """Replace what pdoc would not show, in the modules of these names and in Tensor."""
    for module in [importlib.import_module(name) for name in names]:
        for name in getattr(module, "__all__", ()):
            setattr(module, name, getattr(module, name))  # a name that is loaded on demand
        for name, value in list(vars(module).items()):
            if isinstance(value, Primitive):
                setattr(module, name, as_function(value))
    for part in Tensor.__mro__[1:-1]:
        for name, value in vars(part).items():
            if not name.startswith("_") and name not in vars(Tensor):
                setattr(Tensor, name, value)
                if inspect.isfunction(value) and not value.__doc__ and hasattr(minigrad, name):
                    value.__doc__ = f"`minigrad.{name}` of this tensor."


def main(folder: Path) -> None:
    """Write the reference into a folder."""
    prepare(NAMESPACES)
    pdoc.render.configure(docformat="google", footer_text="minigrad")
    wanted = [pattern for name in NAMESPACES for pattern in (name, rf"!{name}\..+")]
    pdoc.pdoc(*wanted, output_directory=folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
