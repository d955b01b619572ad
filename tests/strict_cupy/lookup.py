"""What a name of CuPy is, after names.json: whether it exists, and which arguments it takes."""

from __future__ import annotations

import json
import re
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("names.json")
NAMES: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
MODULES = {"cupy", "cupy.linalg", "cupy.random", "cupy.cuda", "cupyx", "cupyx.scipy", "cupyx.scipy.special"}

Values = frozenset[str]  # what something in our sources may be: full names, and literal strings in quotes
NOTHING: Values = frozenset()
ARRAY: Values = frozenset({"cupy.ndarray"})
# What a function of CuPy returns, where that is neither an array nor an instance of the class called.
RETURNS = {
    "cupy.get_default_memory_pool": "cupy.cuda.MemoryPool",
    "cupy.get_default_pinned_memory_pool": "cupy.cuda.PinnedMemoryPool",
    "cupy.random.default_rng": "cupy.random.Generator",
    "cupy.cuda.get_current_stream": "cupy.cuda.Stream",
}
NO_ARRAY = {"array_split", "asnumpy", "broadcast_arrays", "divmod", "frexp", "get", "item", "modf", "nonzero",
            "result_type", "shape", "size", "split", "tobytes", "tolist", "unique"}  # fmt: skip
# What an attribute is, where that has attributes to follow.
HOLDS = dict.fromkeys(("cupy.ndarray.T", "cupy.ndarray.imag", "cupy.ndarray.mT", "cupy.ndarray.real"), "cupy.ndarray")
HOLDS |= {"cupy.ndarray.device": "cupy.cuda.Device", "cupy.cuda.Stream.null": "cupy.cuda.Stream"}


class Call(NamedTuple):
    """The arguments of a call; their number is None where a ``*`` or ``**`` leaves it open."""

    positional: int | None
    keywords: tuple[str, ...]


def of_ufunc(arity: list[int]) -> str:
    """A ufunc's parameters; it has no ``where=``."""
    inputs, outputs = arity
    outs = ["out=", *(f"out{i}=" for i in range(1, outputs))]
    return ", ".join([*(f"x{i}" for i in range(inputs)), "/", *outs, "*", "dtype=", "casting="])


def _table(names: dict[str, Any]) -> dict[str, str | None]:
    """Every name by its full path: the parameters of what is called, None for anything else."""
    ufuncs = {name: of_ufunc(arity) for name, arity in names["ufuncs"].items()}
    special = {name: of_ufunc(x) if isinstance(x, list) else x for name, x in names["special"].items()}
    folders = {
        "cupy": names["functions"] | ufuncs | dict.fromkeys(names["constants"]), "cupy.linalg": names["linalg"],
        "cupy.random": names["random"] | {"Generator": "bit_generator"}, "cupy.random.Generator": names["Generator"],
        "cupy.ndarray": names["ndarray"], "cupy.cuda": names["cuda"], "cupyx": names["cupyx"],
        "cupyx.scipy.special": special,
    }  # fmt: skip
    for ufunc in ufuncs:
        folders[f"cupy.{ufunc}"] = names["ufunc"]
    found: dict[str, str | None] = dict.fromkeys(MODULES)
    return found | {f"{folder}.{name}": value for folder, members in folders.items() for name, value in members.items()}


TABLE = _table(NAMES)
FOLDERS = {path.rpartition(".")[0] for path in TABLE}


def compact(text: str) -> str:
    """A signature's text as names.json keeps it: ``(self, int axis=-1, *, x: int = 2) -> y`` is ``axis=, *, x=``."""
    inside = text[text.index("(") + 1 :].rpartition(" -> ")[0] or text[text.index("(") + 1 :]
    inside = inside.strip().removesuffix(")")
    while re.search(r"[(\[<'][^()\[\]<>']*[)\]>']", inside):  # defaults and annotations may hold commas
        inside = re.sub(r"[(\[<'][^()\[\]<>']*[)\]>']", "", inside)
    names = []
    for part in filter(None, (part.strip() for part in inside.split(","))):
        name = part.partition("=")[0].partition(":")[0].split()[-1]
        names.append(name + "=" if "=" in part else name)
    return ", ".join(name for name in names if name not in ("self", "cls"))


def fault(name: str, call: Call | None) -> str | None:
    """What is wrong with a use of ``name``, mentioned or called; None if nothing is."""
    if name not in TABLE:
        return f"{name} does not exist in CuPy {NAMES['cupy']}"
    parameters = TABLE[name]
    refused = None if call is None or parameters is None else misfit(signature(parameters), call)
    return f"{name}({parameters}): {refused}" if refused else None


def misfit(signature: Signature, call: Call) -> str | None:
    """Why a function of this signature does not take such a call; None if it does."""
    bind = signature.bind_partial if call.positional is None else signature.bind
    try:
        bind(*[None] * (call.positional or 0), **dict.fromkeys(call.keywords))
    except TypeError as error:
        return str(error)
    return None


def signature(parameters: str) -> Signature:
    """The signature that was kept as ``"a, axis=, *, out="``."""
    made: list[Parameter] = []
    kind = Parameter.POSITIONAL_OR_KEYWORD
    for part in filter(None, parameters.split(", ")):
        name = part.strip("*=")
        if part == "/":
            made = [p.replace(kind=Parameter.POSITIONAL_ONLY) for p in made]
        elif part.startswith("**"):
            made.append(Parameter(name, Parameter.VAR_KEYWORD))
        elif part.startswith("*"):
            made += [Parameter(name, Parameter.VAR_POSITIONAL)] if name else []
            kind = Parameter.KEYWORD_ONLY
        else:
            made.append(Parameter(name, kind, default=None if part.endswith("=") else Parameter.empty))
    return Signature(made)


def known_as(path: str, name: str) -> Values:
    """What ``path.name`` is, where there is something to follow: it is called, or has attributes itself."""
    full = f"{path}.{name}"
    if full in HOLDS:
        return frozenset({HOLDS[full]})
    return frozenset({full}) if TABLE.get(full) is not None or full in FOLDERS else NOTHING


def returned(path: str) -> Values:
    """What a call of this gives."""
    folder, _, name = path.rpartition(".")
    if path in RETURNS:
        return frozenset({RETURNS[path]})
    if name[0].isupper():
        return frozenset({path})  # an instance of this class
    return NOTHING if name in NO_ARRAY or folder.startswith("cupy.cuda") or folder == "cupyx" else ARRAY
