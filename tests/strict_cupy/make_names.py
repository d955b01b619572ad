"""Write names.json: the names and keywords of the CuPy that is installed here. It needs cuBLAS, but no GPU or driver.

    python -m tests.strict_cupy.make_names

A function is kept as its parameter list, without annotations: ``"a, axis=, dtype=, out=, keepdims="``,
where ``=`` marks a default and ``*`` what follows as keyword-only. A method has no ``self``. A ufunc is kept as the
numbers of arrays that it takes and gives.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from types import ModuleType

import cupy
import cupyx.scipy.special

FILE = Path(__file__).with_name("names.json")


def compact(text):
    """A signature's text as names.json keeps it: ``(self, int axis=-1, *, x: int = 2) -> y`` is ``axis=, *, x=``."""
    inside = text[text.index("(") + 1 :].rpartition(" -> ")[0] or text[text.index("(") + 1 :]
    inside = re.sub(r"'[^']*'", "", inside.strip().removesuffix(")"))  # annotations are texts
    while re.search(r"[(\[<'][^()\[\]<>']*[)\]>']", inside):  # defaults and annotations may hold commas
        inside = re.sub(r"[(\[<'][^()\[\]<>']*[)\]>']", "", inside)
    names = []
    for part in filter(None, (part.strip() for part in inside.split(","))):
        name = part.partition("=")[0].partition(":")[0].split()[-1]
        names.append(name + "=" if "=" in part else name)
    return ", ".join(name for name in names if name not in ("self", "cls"))


def parameters_of(name, value):
    """The parameters of what is called: as Python tells them, else as Cython writes them above a docstring."""
    try:
        return compact(str(inspect.signature(value)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        line = (getattr(value, "__doc__", None) or "").partition("\n")[0]
        return compact(line) if f"{name}(" in line else "*args, **kwargs"


def public(owner):
    """The public attributes, by name; what modules import from elsewhere for themselves is left out."""
    found = {name: getattr(owner, name) for name in dir(owner) if not name.startswith("_")}
    foreign = (ModuleType, type(annotations))
    return {name: value for name, value in found.items() if not isinstance(value, foreign)}


def ufuncs(module):
    """The ufuncs of a module: how many arrays each takes and gives."""
    return {name: [f.nin, f.nout] for name, f in public(module).items() if isinstance(f, cupy.ufunc)}


def functions(module):
    """The functions of a module that are no ufuncs."""
    return {name: parameters_of(name, value) for name, value in public(module).items()
            if callable(value) and not isinstance(value, (type, cupy.ufunc))}


def attributes(owner):
    """What a class or module has: the parameters of what is called, None for anything else."""
    return {name: parameters_of(name, value) if callable(value) else None for name, value in public(owner).items()}


def cuda():
    """What a program may use of ``cupy.cuda``, by dotted name: ``"Device.synchronize"``, ``"runtime.getDevice"``."""
    module = cupy.cuda
    parts = {
        "Device": module.Device, "Event": module.Event, "MemoryPool": module.MemoryPool,
        "PinnedMemoryPool": module.PinnedMemoryPool, "Stream": module.Stream, "compiler": module.compiler,
        "memory": module.memory, "runtime": module.runtime,
    }
    found = attributes(module) | {part: None for part in parts if part not in public(module)}
    for part, owner in parts.items():
        found |= {f"{part}.{name}": value for name, value in attributes(owner).items()}
    unwanted = re.compile(r"runtime\.(cuda|CUDA_)")  # the flags of the runtime's own functions
    return {name: value for name, value in found.items() if not unwanted.match(name)}


def names():
    """Everything that the stand-in offers or refuses by, and that the check of our sources looks names up in."""
    return {
        "cupy": cupy.__version__,
        "ufuncs": ufuncs(cupy),
        "ufunc": attributes(cupy.ufunc),
        "functions": {"ElementwiseKernel": "in_params, out_params, operation, name=, **kwargs", **functions(cupy)},
        "linalg": functions(cupy.linalg),
        "random": functions(cupy.random),
        "constants": sorted(n for n, v in public(cupy).items() if isinstance(v, (type, float)) or v is None),
        "ndarray": attributes(cupy.ndarray),
        "special": ufuncs(cupyx.scipy.special) | functions(cupyx.scipy.special),
        "cuda": cuda(),
    }


if __name__ == "__main__":
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in names().items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
