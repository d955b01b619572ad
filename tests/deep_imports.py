"""The modules of minigrad as version 0.1.0 had them, and whether each import from one of them still works.

``deep_imports.json`` maps a module to the names that its source bound. Those under "removed", the machinery of one file
or another, are gone for good; CHANGELOG says which and what replaces them. What has moved answers for one release:
with the object itself and one DeprecationWarning, which names where it stands now. ``python -m tests.deep_imports``
prints what does not, a line for each; `tests.public_names` holds the names that are meant to be imported.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

RECORD = Path(__file__).with_suffix(".json")
CALLER = "<the importing code>"
_ABSENT = object()


def bound(source: str) -> list[str]:
    """The public names that a module's source defines, or offers in ``__all__``; type variables aside."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=target, value=ast.expr()):
                names |= _targets(target)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                names |= set(ast.literal_eval(value))
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "ParamSpec"))):
                pass
            case ast.Assign(targets=targets):
                names |= {name for target in targets for name in _targets(target)}
    return sorted(name for name in names if not name.startswith("_"))


def _targets(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def bound_by(module: str) -> set[str]:
    """The names that the source of a module binds now; none where there is no such file."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return set()
    return set(bound(Path(found.origin).read_text(encoding="utf-8")))


def problems(recorded: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the imports that are not removed for good, a line for each name."""
    removed = recorded["removed"]
    for module in sorted(recorded.keys() - {"removed"}):
        names = [name for name in recorded[module] if name not in removed.get(module, ())]
        told_by_module, error = _import(f"import {module}") if names else ({}, "")
        if error:
            yield f"import {module}: {error}"
            continue
        unmoved = bound_by(module)
        for name in names:
            statement = f"from {module} import {name}"
            told, error = _import(statement)
            problem = error or _problem(module, name, told_by_module | told, name in unmoved)
            if problem:
                yield f"{statement}: {problem}"


def _import(statement: str) -> tuple[dict[str, warnings.WarningMessage], str]:
    """The distinct warnings of an import by their text, and what it raised, if anything."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(statement, CALLER, "exec"), {})
        except Exception as error:  # noqa: BLE001 - a line of the report
            return {}, f"{type(error).__name__}: {error}"
    return {str(w.message): w for w in caught}, ""


def _problem(module: str, name: str, told: dict[str, warnings.WarningMessage], unmoved: bool) -> str:
    """What is wrong with one import that works: with its warnings, or with the place that they name."""
    if unmoved and not told:
        return ""
    if len(told) != 1:
        return f"has moved, and gives {len(told)} warnings, not one: {'; '.join(told)}"
    ((text, warning),) = told.items()
    if not issubclass(warning.category, DeprecationWarning) or warning.filename != CALLER:
        return f"gives a {warning.category.__name__} at {warning.filename}, no DeprecationWarning at the importing code"
    value = _value(module, name, "ignore")
    places = [place for place in re.findall(r"minigrad(?:\.\w+)*", text) if place not in (module, f"{module}.{name}")]
    found = [_value(*home, "error") for place in places for home in ((place, name), place.rpartition(".")[::2])]
    if value is _ABSENT or not any(value is one for one in found):
        return f"its warning names no place that has the identical object: {text}"
    return ""


def _value(module: str, name: str, deprecated: Literal["ignore", "error"]) -> Any:
    """What a module has under a name; `_ABSENT` for nothing and, on "error", for what is an old place itself."""
    with warnings.catch_warnings():
        warnings.simplefilter(deprecated, DeprecationWarning)
        try:
            return getattr(importlib.import_module(module), name, _ABSENT)
        except (ImportError, ValueError, DeprecationWarning):
            return _ABSENT


if __name__ == "__main__":
    print(*problems(json.loads(RECORD.read_text(encoding="utf-8"))), sep="\n")
