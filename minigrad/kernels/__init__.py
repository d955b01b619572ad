"""Faster bodies for the hot operations, which run in place of their definitions and are held to them by tests.

`minigrad.kernels.host` has those for NumPy. `explain_path` tells which bodies a computation ran. `only_definitions`
switches all off. `faster_body` registers one, and `check_body` holds it to the definition (docs/kernels.md).
"""

from __future__ import annotations

import importlib

from minigrad.engine.primitive import only_definitions
from minigrad.kernels.bodies import faster_body
from minigrad.kernels.checking import BodyCheck, BodyError, check_body
from minigrad.kernels.paths import PathExplanation, PathWatcher, Step, explain_path, report_choice

__all__ = [
    "BodyCheck", "BodyError", "PathExplanation", "PathWatcher", "Step", "check_body", "explain_path", "faster_body",
    "only_definitions", "report_choice",
]


def install() -> None:
    """Register the bodies that run by default."""
    for name in ("attention", "dropout", "embedding", "indexing", "linear", "linear_cross_entropy", "loss", "matrices",
                 "normalization", "reduction", "selection", "softmax"):
        importlib.import_module(f"minigrad.kernels.host.{name}")
