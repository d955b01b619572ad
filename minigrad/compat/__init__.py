"""What names and spellings from PyTorch and NumPy are called here.

`install` lets errors say so. `minigrad.compat.names` and `minigrad.compat.module_arguments`, long tables, are imported
when a name turns out to be missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection

from minigrad.compat import spellings
from minigrad.namespace import Answers


def _missing(owner: str, name: str) -> str | None:
    return importlib.import_module("minigrad.compat.names").missing(owner, name)


def _missing_on_module(kind: str, name: str) -> str | None:
    return importlib.import_module("minigrad.compat.names").missing_on_module(kind, name)


def _arguments(keywords: Collection[str], parameters: Collection[str]) -> str | None:
    if not keywords:
        return None
    return importlib.import_module("minigrad.compat.module_arguments").arguments(keywords, parameters)


def _called(module: str) -> str:
    return importlib.import_module("minigrad.compat.names").called(module)


def install() -> None:
    """Let errors use these tables."""
    spellings.install()
    Answers.missing, Answers.called = staticmethod(_missing), staticmethod(_called)  # type: ignore[method-assign]
    Answers.arguments = staticmethod(_arguments)  # type: ignore[method-assign]
    Answers.missing_on_module = staticmethod(_missing_on_module)  # type: ignore[method-assign]
