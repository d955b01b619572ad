"""Write names.json: the names and keywords of the CuPy that is installed here (a GPU is not needed).

    python tests/strict_cupy/make_names.py

A function is kept as its parameter list, without annotations: ``"a, axis=, dtype=, out=, keepdims="``,
where ``=`` marks a default and ``*`` what follows as keyword-only. A method has no ``self``.
"""

import inspect
import json
import re
from pathlib import Path

import cupy
import cupyx.scipy.special


def parameters(text: str) -> str:
    """A signature's text in compact form: ``(self, int axis=-1, *, x: int = 2) -> y`` is ``axis=, *, x=``."""
    inside = text[text.index("(") + 1 :].rpartition(" -> ")[0] or text[text.index("(") + 1 :]
    inside = inside.strip().removesuffix(")")
    while re.search(r"[(\[<'][^()\[\]<>']*[)\]>']", inside):  # defaults and annotations may hold commas
        inside = re.sub(r"[(\[<'][^()\[\]<>']*[)\]>']", "", inside)
    names = []
    for part in filter(None, (part.strip() for part in inside.split(","))):
        name = part.partition("=")[0].partition(":")[0].split()[-1]
        names.append(name + "=" if "=" in part else name)
    return ", ".join(name for name in names if name != "self")


def functions(module: object) -> dict[str, str]:
    """The functions of a module that tell their signature, by name."""
    found = {}
    for name in sorted(n for n in dir(module) if not n.startswith("_")):
        value = getattr(module, name)
        if isinstance(value, (type, cupy.ufunc)) or not callable(value):
            continue
        try:
            found[name] = parameters(str(inspect.signature(value)))
        except (TypeError, ValueError):
            found[name] = "*args, **kwargs"
    return found


def methods(kind: type) -> dict[str, str | None]:
    """The attributes of a class: a method's parameters, or None for what is not called."""
    found: dict[str, str | None] = {}
    for name in sorted(n for n in dir(kind) if not n.startswith("_")):
        method = getattr(kind, name)
        line = (getattr(method, "__doc__", None) or "").partition("\n")[0]
        if not callable(method):
            found[name] = None
        elif f"{name}(" in line:  # Cython puts the signature there
            found[name] = parameters(line)
        else:
            found[name] = "*args, **kwargs"
    return found


def names() -> dict[str, object]:
    """Everything that the stand-in offers or refuses by."""
    public = {n: getattr(cupy, n) for n in dir(cupy) if not n.startswith("_")}
    return {
        "cupy": cupy.__version__,
        "ufuncs": sorted(n for n, v in public.items() if isinstance(v, cupy.ufunc)),
        "functions": functions(cupy),
        "linalg": functions(cupy.linalg),
        "constants": sorted(n for n, v in public.items() if isinstance(v, (type, float)) or v is None),
        "ndarray": methods(cupy.ndarray),
        "Generator": methods(cupy.random.Generator),
        "special": sorted(n for n in dir(cupyx.scipy.special) if not n.startswith("_")),
    }


if __name__ == "__main__":
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in names().items()]
    Path(__file__).with_name("names.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
