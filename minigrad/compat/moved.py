"""Modules that have moved: importing one from its old place works for one release, with a DeprecationWarning.

For each of them `install` puts a `MovedModule` into `sys.modules`, where an import looks first. It looks each name up
in the places that `MOVED` lists, and warns with the place where it stands now. A module that is still there, and that
some names have left, gets a ``__getattr__`` that does the same with the places that `LEFT` lists.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

from minigrad.namespace import Namespace

# The old module -> where its names stand now: the first of these modules that has the name.
MOVED: dict[str, tuple[str, ...]] = {
    "minigrad.accumulate": ("minigrad.engine.accumulate",),
    "minigrad.array_like": ("minigrad.tensor.array_like",),
    "minigrad.autograd": ("minigrad.engine.backward",),
    "minigrad.bundle": ("minigrad.functional.bundle",),
    "minigrad.calls": ("minigrad.engine.calls",),
    "minigrad.creation": ("minigrad.tensor.creation",),
    "minigrad.elementwise_methods": ("minigrad.tensor.elementwise_methods",),
    "minigrad.gpu": ("minigrad.precision.gpu",),
    "minigrad.half": ("minigrad.precision.half",),
    "minigrad.hooks": ("minigrad.engine.hooks",),
    "minigrad.inner_call": ("minigrad.func.inner_call",),
    "minigrad.methods": ("minigrad.tensor.methods",),
    "minigrad.modes": ("minigrad.engine.switches",),
    "minigrad.names": ("minigrad.compat.names",),
    "minigrad.notebook": ("minigrad.tensor.notebook",),
    "minigrad.observe": ("minigrad.engine.observe",),
    "minigrad.operands": ("minigrad.engine.operands",),
    "minigrad.operators": ("minigrad.tensor.operators",),
    "minigrad.plan": ("minigrad.engine.plan",),
    "minigrad.recompute": ("minigrad.func.checkpointing",),
    "minigrad.rules": ("minigrad.engine.rules",),
    "minigrad.signatures": ("minigrad.engine.signatures",),
    "minigrad.tape": ("minigrad.engine.node",),
    "minigrad.transforms": ("minigrad.engine.grad",),
    "minigrad.trees": ("minigrad.func.trees",),
    "minigrad.writing": ("minigrad.device.writing",),
    "minigrad.optim.scaler": ("minigrad.precision.scaler",),
    "minigrad.ops.diagonals": ("minigrad.ops.more.diagonals",),
    "minigrad.ops.hyperbolic": ("minigrad.ops.more.trigonometric",),
    "minigrad.ops.joining": ("minigrad.ops.shape", "minigrad.ops.more.shape"),
    "minigrad.ops.norms": ("minigrad.ops.more.reduction",),
    "minigrad.ops.powers": ("minigrad.ops.exponential", "minigrad.ops.more.exponential"),
    "minigrad.ops.products": ("minigrad.ops.more.products",),
    "minigrad.ops.repetition": ("minigrad.ops.more.shape",),
    "minigrad.ops.rounding": ("minigrad.ops.more.arithmetic", "minigrad.ops.selection"),
    "minigrad.ops.scan": ("minigrad.ops.more.scan",),
    "minigrad.ops.scattering": ("minigrad.ops.more.places",),
    "minigrad.ops.sorting": ("minigrad.ops.more.sorting",),
    "minigrad.ops.trigonometric": ("minigrad.ops.more.trigonometric",),
    "minigrad.kernels.jit_activation": ("minigrad.kernels.compiled.activation",),
    "minigrad.kernels.jit_all": ("minigrad.kernels.compiled.all",),
    "minigrad.kernels.jit_attention": ("minigrad.kernels.compiled.attention",),
    "minigrad.kernels.jit_cache": ("minigrad.kernels.compiled.cache",),
    "minigrad.kernels.jit_dropout": ("minigrad.kernels.compiled.dropout",),
    "minigrad.kernels.jit_kernel": ("minigrad.kernels.compiled.kernel",),
    "minigrad.kernels.jit_loss": ("minigrad.kernels.compiled.loss",),
    "minigrad.kernels.jit_math": ("minigrad.kernels.compiled.math",),
    "minigrad.kernels.jit_normalization": ("minigrad.kernels.compiled.normalization",),
    "minigrad.kernels.jit_optim": ("minigrad.kernels.compiled.optim",),
    "minigrad.kernels.jit_softmax": ("minigrad.kernels.compiled.softmax",),
    "minigrad.kernels.jit_twin": ("minigrad.kernels.compiled.twin",),
    # `minigrad.primitive`, `minigrad.tap` and `minigrad.autocast` are functions, and were modules beside that.
    "minigrad.autocast": ("minigrad.precision.autocast",),
    "minigrad.primitive": ("minigrad.engine.primitive",),
    "minigrad.tap": ("minigrad.functional.compositions",),
}

# A module that is still there -> where the names stand that have left it.
LEFT: dict[str, tuple[str, ...]] = {
    "minigrad.ops.arithmetic": ("minigrad.ops.more.arithmetic",),
    "minigrad.ops.exponential": ("minigrad.ops.more.exponential",),
    "minigrad.ops.indexing": ("minigrad.ops.more.places",),
    "minigrad.ops.linalg": ("minigrad.ops.more.einsum", "minigrad.kernels.host.matrices"),
    "minigrad.ops.reduction": ("minigrad.ops.more.reduction", "minigrad.precision.half"),
    "minigrad.ops.selection": ("minigrad.kernels.host.selection",),
    "minigrad.ops.shape": ("minigrad.ops.more.shape",),
}


class MovedModule(Namespace):
    """An old module: it has each name that stood in it, from where it stands now."""

    def __getattr__(self, name: str) -> Any:
        """The object of this name, with a DeprecationWarning that names its new place."""
        place = place_of(name, MOVED[self.__name__])
        return super().__getattr__(name) if place is None else moved(self.__name__, name, place)


def place_of(name: str, places: tuple[str, ...]) -> str | None:
    """The first of the modules `places` that has the name; None if there is none."""
    if name.startswith("__"):
        return None
    return next((place for place in places if name in vars(importlib.import_module(place))), None)


def moved(old: str, name: str, place: str) -> Any:
    """The object that has moved from the module `old` to `place`, with a DeprecationWarning for who imports it."""
    warnings.warn(f"{old}.{name} stands in {place} now; this old place answers for one release", DeprecationWarning,
                  stacklevel=3)
    return vars(sys.modules[place])[name]


def finder(module: str) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module that names have left."""

    def find(name: str) -> Any:
        place = place_of(name, LEFT[module])
        if place is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return moved(module, name, place)

    return find


def install() -> None:
    """Let imports from the old places find what has moved."""
    sys.modules.update({name: MovedModule(name) for name in MOVED})
    for name in LEFT:
        vars(importlib.import_module(name))["__getattr__"] = finder(name)
