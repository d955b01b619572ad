"""Modules whose errors, for a missing name and for a call, say what there is here instead.

``minigrad.tensor([1.0])`` finds the module ``minigrad.tensor``, where PyTorch has a function of that name.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import ModuleType
from typing import TYPE_CHECKING


class Answers:
    """The texts of errors about missing names; `minigrad.compat` puts functions that know more in place of these."""

    @staticmethod
    def missing(owner: str, name: str) -> str | None:
        """The text of the error for a `name` that a module or a class of tensors lacks; None for Python's own."""
        return None

    @staticmethod
    def missing_on_module(kind: str, name: str) -> str | None:
        """The same for an `nn.Module` of the class `kind`."""
        return None

    @staticmethod
    def arguments(keywords: Collection[str], parameters: Collection[str]) -> str | None:
        """The text of the error for `keywords` that an `nn.Module` with these parameters lacks; None for Python's."""
        return None

    @staticmethod
    def called(module: str) -> str:
        """The text of the error for a module that was called."""
        return f"{module} is a module and cannot be called"


def absent(module: str, name: str) -> AttributeError:
    """The error for a `name` that `module` does not have."""
    told = None if name.startswith("_") else Answers.missing(module, name)
    return AttributeError(told or f"module {module!r} has no attribute {name!r}", name=name)


class Namespace(ModuleType):
    """A module that says what names from elsewhere are called here."""

    if not TYPE_CHECKING:  # a type checker should find a missing name missing

        def __getattr__(self, name):
            """Runs only where there is no such attribute."""
            raise absent(self.__name__, name)

        def __call__(self, *args, **kwargs):
            """No module is a function."""
            raise TypeError(Answers.called(self.__name__))


def answer(*modules: str) -> None:
    """Let each of these modules, which are loaded, be a `Namespace`."""
    for module in modules:
        sys.modules[module].__class__ = Namespace
