"""Modules that have moved: importing one from its old place works for one release, with a DeprecationWarning.

For each of them `install` puts a `MovedModule` into `sys.modules`, where an import looks first. It looks each name up
in the places that `MOVED` lists, and warns with the place where it stands now.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec
from typing import Any

from minigrad.namespace import Namespace

# The old module -> where its names stand now: the first of these modules that has the name.
MOVED: dict[str, tuple[str, ...]] = {
    "minigrad.accumulate": ("minigrad.engine.backward", "minigrad.engine.operands"),
    "minigrad.array_like": ("minigrad.tensor.conversion",),
    "minigrad.autograd": ("minigrad.engine.backward", "minigrad.func.inner_call"),
    "minigrad.bundle": ("minigrad.functional.bundle",),
    "minigrad.calls": ("minigrad.engine.errors", "minigrad.compat.spellings", "minigrad.arguments"),
    "minigrad.creation": ("minigrad.tensor.creation",),
    "minigrad.gpu": ("minigrad.device.memory", "minigrad.precision.gpu"),
    "minigrad.half": ("minigrad.precision.half",),
    "minigrad.hooks": ("minigrad.engine.hooks", "minigrad.engine.backward"),
    "minigrad.inner_call": ("minigrad.func.inner_call",),
    "minigrad.methods": ("minigrad.tensor.methods",),
    "minigrad.modes": ("minigrad.engine.switches", "minigrad.functional.compositions"),
    "minigrad.names": ("minigrad.compat.names",),
    "minigrad.notebook": ("minigrad.tensor.notebook",),
    "minigrad.observe": ("minigrad.inspect.observer", "minigrad.engine.interpreters"),
    "minigrad.operands": ("minigrad.engine.operands",),
    "minigrad.plan": ("minigrad.engine.primitive",),
    "minigrad.recompute": ("minigrad.func.checkpointing",),
    "minigrad.rules": ("minigrad.engine.primitive", "minigrad.engine.operands"),
    "minigrad.signatures": ("minigrad.engine.primitive",),
    "minigrad.tape": ("minigrad.engine.node",),
    "minigrad.transforms": ("minigrad.engine.grad",),
    "minigrad.trees": ("minigrad.func.trees",),
    "minigrad.writing": ("minigrad.device.writing",),
    "minigrad.nn.activations": ("minigrad.nn.more.activations",),
    "minigrad.nn.convolution": ("minigrad.nn.more.convolution",),
    "minigrad.nn.flatten": ("minigrad.nn.more.convolution",),
    "minigrad.nn.functional_call": ("minigrad.func.modules",),
    "minigrad.nn.losses": ("minigrad.nn.more.losses",),
    "minigrad.nn.normalization": ("minigrad.nn.layers", "minigrad.nn.more.normalization"),
    "minigrad.optim.packing": ("minigrad.optim.storage.packing",),
    "minigrad.optim.skipping": ("minigrad.optim.storage.skipping",),
    "minigrad.optim.state": ("minigrad.optim.storage.state",),
    "minigrad.optim.scaler": ("minigrad.precision.scaler",),
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


class MovedModule(Namespace):
    """An old module: it has each name that stood in it, from where it stands now."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)  # `importlib.util.find_spec` refuses a loaded module that has none

    def __getattr__(self, name: str) -> Any:
        """The object of this name, with a DeprecationWarning that names its new place."""
        if not name.startswith("__"):
            for place in MOVED[self.__name__]:
                module = importlib.import_module(place)
                if name in vars(module):
                    warnings.warn(f"{self.__name__}.{name} stands in {place} now; this old place answers for one "
                                  "release", DeprecationWarning, stacklevel=2)
                    return vars(module)[name]
        return super().__getattr__(name)


def install() -> None:
    """Let imports from the old places find what has moved."""
    sys.modules.update({name: MovedModule(name) for name in MOVED})
