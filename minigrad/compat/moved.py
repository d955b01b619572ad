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
from importlib.machinery import ModuleSpec
from typing import Any

from minigrad.namespace import Namespace

# The old module -> where its names stand now: the first of these modules that has the name.
MOVED: dict[str, tuple[str, ...]] = {
    "minigrad.accumulate": ("minigrad.engine.operands", "minigrad.tensor.gradients", "minigrad.engine.backward"),
    "minigrad.array_like": ("minigrad.tensor.conversion",),
    "minigrad.autocast": ("minigrad.precision.autocast",),
    "minigrad.autograd": ("minigrad.tensor.gradients", "minigrad.engine.backward", "minigrad.func.inner_call",
                          "minigrad.func.checkpointing"),
    "minigrad.bundle": ("minigrad.functional.bundle",),
    "minigrad.calls": ("minigrad.arguments", "minigrad.engine.errors", "minigrad.compat.spellings"),
    "minigrad.creation": ("minigrad.tensor.creation",),
    "minigrad.elementwise_methods": ("minigrad.tensor.methods",),
    "minigrad.functional.activation": ("minigrad.functional.more.activation",),
    "minigrad.functional.convolution": ("minigrad.functional.more.convolution",),
    "minigrad.functional.grouped_query": ("minigrad.functional.attention",),
    "minigrad.functional.likelihood": ("minigrad.functional.more.losses",),
    "minigrad.functional.linear_cross_entropy": ("minigrad.functional.more.linear_cross_entropy",),
    "minigrad.functional.multi_head": ("minigrad.functional.attention",),
    "minigrad.functional.pooling": ("minigrad.functional.more.convolution",),
    "minigrad.functional.regression": ("minigrad.functional.more.losses",),
    "minigrad.functional.rows": ("minigrad.functional.more.rows",),
    "minigrad.functional.similarity": ("minigrad.functional.more.similarity",),
    "minigrad.functional.sums": ("minigrad.kernels.host.sums", "minigrad.kernels.bodies"),
    "minigrad.functional.targets": ("minigrad.functional.loss", "minigrad.functional.more.losses"),
    "minigrad.functional.windows": ("minigrad.ops.more.windows", "minigrad.functional.more.convolution"),
    "minigrad.gpu": ("minigrad.precision.gpu", "minigrad.device.memory"),
    "minigrad.half": ("minigrad.precision.half",),
    "minigrad.hooks": ("minigrad.tensor.hooks",),
    "minigrad.inner_call": ("minigrad.func.inner_call",),
    "minigrad.inspect.boxes": ("minigrad.inspect.graph",),
    "minigrad.inspect.dot": ("minigrad.inspect.graph",),
    "minigrad.inspect.drawing": ("minigrad.inspect.graph",),
    "minigrad.inspect.entry": ("minigrad.inspect.recorder",),
    "minigrad.inspect.listing": ("minigrad.inspect.recorder",),
    "minigrad.inspect.profile_tables": ("minigrad.inspect.profile_report",),
    "minigrad.inspect.profile_trace": ("minigrad.inspect.profile_report",),
    "minigrad.inspect.spans": ("minigrad.inspect.profile_report",),
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
    "minigrad.kernels.jit_twin": ("minigrad.kernels.compiled.operands",),
    "minigrad.methods": ("minigrad.tensor.methods",),
    "minigrad.modes": ("minigrad.functional.compositions", "minigrad.device.local"),
    "minigrad.names": ("minigrad.compat.names",),
    "minigrad.nn.activations": ("minigrad.nn.more.activations",),
    "minigrad.nn.convolution": ("minigrad.nn.more.convolution",),
    "minigrad.nn.flatten": ("minigrad.nn.more.convolution",),
    "minigrad.nn.functional_call": ("minigrad.func.modules",),
    "minigrad.nn.losses": ("minigrad.nn.more.losses",),
    "minigrad.nn.normalization": ("minigrad.nn.layers", "minigrad.nn.more.normalization"),
    "minigrad.notebook": ("minigrad.tensor.notebook",),
    "minigrad.observe": ("minigrad.engine.interpreters", "minigrad.compat.observer"),
    "minigrad.operands": ("minigrad.engine.operands", "minigrad.arguments"),
    "minigrad.operators": ("minigrad.tensor.tensor",),
    "minigrad.ops.diagonals": ("minigrad.ops.more.diagonals",),
    "minigrad.ops.hyperbolic": ("minigrad.ops.more.trigonometric",),
    "minigrad.ops.joining": ("minigrad.ops.shape", "minigrad.ops.more.stacking"),
    "minigrad.ops.norms": ("minigrad.ops.more.reduction",),
    "minigrad.ops.powers": ("minigrad.ops.exponential", "minigrad.ops.more.exponential"),
    "minigrad.ops.products": ("minigrad.ops.more.products",),
    "minigrad.ops.repetition": ("minigrad.ops.more.shape",),
    "minigrad.ops.rounding": ("minigrad.ops.more.arithmetic", "minigrad.ops.selection"),
    "minigrad.ops.scan": ("minigrad.ops.more.scan",),
    "minigrad.ops.scattering": ("minigrad.ops.more.places",),
    "minigrad.ops.sorting": ("minigrad.ops.more.sorting",),
    "minigrad.ops.trigonometric": ("minigrad.ops.more.trigonometric",),
    "minigrad.optim.packing": ("minigrad.optim.storage.packing",),
    "minigrad.optim.scaler": ("minigrad.precision.scaler",),
    "minigrad.optim.skipping": ("minigrad.optim.storage.skipping",),
    "minigrad.optim.state": ("minigrad.optim.storage.state",),
    "minigrad.plan": ("minigrad.engine.rules", "minigrad.engine.primitive"),
    "minigrad.primitive": ("minigrad.engine.primitive", "minigrad.engine.node"),
    "minigrad.recompute": ("minigrad.func.checkpointing",),
    "minigrad.rules": ("minigrad.engine.rules", "minigrad.engine.operands", "minigrad.engine.primitive"),
    "minigrad.signatures": ("minigrad.engine.rules", "minigrad.engine.primitive"),
    "minigrad.tap": ("minigrad.functional.compositions",),
    "minigrad.tape": ("minigrad.engine.node",),
    "minigrad.transforms": ("minigrad.tensor.gradients",),
    "minigrad.trees": ("minigrad.func.trees",),
    "minigrad.writing": ("minigrad.device.writing",),
}

# A module that is still there -> where the names stand that have left it.
LEFT: dict[str, tuple[str, ...]] = {
    "minigrad.functional.attention": ("minigrad.kernels.host.attention",),
    "minigrad.functional.dropout": ("minigrad.arguments",),
    "minigrad.functional.embedding": ("minigrad.functional.more.one_hot",),
    "minigrad.functional.loss": ("minigrad.kernels.host.loss",),
    "minigrad.functional.normalization": ("minigrad.functional.more.rms_norm",),
    "minigrad.functional.softmax": ("minigrad.kernels.host.softmax",),
    "minigrad.ops.arithmetic": ("minigrad.ops.more.arithmetic",),
    "minigrad.ops.exponential": ("minigrad.ops.more.exponential",),
    "minigrad.ops.indexing": ("minigrad.ops.more.places",),
    "minigrad.ops.linalg": ("minigrad.ops.more.einsum", "minigrad.kernels.host.matrices", "minigrad.ops.shape"),
    "minigrad.ops.reduction": ("minigrad.ops.more.reduction", "minigrad.precision.half"),
    "minigrad.ops.selection": ("minigrad.kernels.host.selection",),
    "minigrad.ops.shape": ("minigrad.ops.more.shape", "minigrad.ops.more.padding", "minigrad.ops.more.stacking"),
}


class MovedModule(Namespace):
    """An old module: it has each name that stood in it, from the first of `places` that has it."""

    def __init__(self, name: str, places: tuple[str, ...]) -> None:
        super().__init__(name)
        self.__places = places
        self.__spec__ = ModuleSpec(name, None)  # `importlib.util.find_spec` refuses a loaded module that has none

    def __getattr__(self, name: str) -> Any:
        """The object of this name, with a DeprecationWarning that names its new place."""
        place = place_of(name, self.__places)
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


def finder(module: str, places: tuple[str, ...]) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module that names have left for `places`."""

    def find(name: str) -> Any:
        place = place_of(name, places)
        if place is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return moved(module, name, place)

    return find


def install(moved: dict[str, tuple[str, ...]] = MOVED, left: dict[str, tuple[str, ...]] = LEFT) -> None:
    """Let imports from the old places find what has moved."""
    sys.modules.update({name: MovedModule(name, places) for name, places in moved.items()})
    for name, places in left.items():
        vars(importlib.import_module(name))["__getattr__"] = finder(name, places)
