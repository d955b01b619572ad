"""What names and spellings from PyTorch and NumPy are called here, and where modules of ours stood before.

`install` lets errors say so. `minigrad.compat.names`, a long table, is imported when a name turns out to be missing.
"""

from __future__ import annotations

import importlib

from minigrad.compat import moved, spellings
from minigrad.namespace import Answers


def _missing(module: str, name: str) -> str | None:
    return importlib.import_module("minigrad.compat.names").missing(module, name)  # type: ignore[no-any-return]


def _called(module: str) -> str:
    return importlib.import_module("minigrad.compat.names").called(module)  # type: ignore[no-any-return]


def install() -> None:
    """Put this knowledge in its places."""
    spellings.install()
    moved.install()
    Answers.missing, Answers.called = staticmethod(_missing), staticmethod(_called)  # type: ignore[method-assign]
