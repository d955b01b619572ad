"""What a module of ours answers to a name that it does not have, and to a call: what it is here.

``minigrad.tensor([1.0])`` finds the module ``minigrad.tensor``, where PyTorch has a function of that name.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING


def absent(module: str, name: str) -> AttributeError:
    """The error for a `name` that `module` does not have."""
    told = None
    if not name.startswith("_"):
        from minigrad.compat.names import missing

        told = missing(module, name)
    return AttributeError(told or f"module {module!r} has no attribute {name!r}", name=name)


class Namespace(ModuleType):
    """A module that says what names from elsewhere are called here; `minigrad.compat.names` knows them."""

    if not TYPE_CHECKING:  # a type checker should find a missing name missing

        def __getattr__(self, name):
            """Runs only where there is no such attribute."""
            raise absent(self.__name__, name)

        def __call__(self, *args, **kwargs):
            """No module is a function."""
            from minigrad.compat.names import called

            raise TypeError(called(self.__name__))


def answer(*modules: str) -> None:
    """Let each of these modules, which are loaded, be a `Namespace`."""
    for module in modules:
        sys.modules[module].__class__ = Namespace
