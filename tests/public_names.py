"""The public names and their signatures, as text; ``python -m tests.public_names`` records those of this version.

``public_names.json`` maps a module to its names. Members of a class follow it as ``Class.member``; what a class
inherits from another public class is listed there alone. Annotations are left out: the spelling of a type may change.
A module that shall be recorded is entered there by hand, as one without names.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import types
import warnings
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, get_origin

from tests.deep_imports import bound_by

RECORD = Path(__file__).with_suffix(".json")
RECORDED: dict[str, dict[str, str]] = json.loads(RECORD.read_text(encoding="utf-8"))
PUBLIC = {path for paths in RECORDED.values() for path in paths}
OURS = ("minigrad", "transformer")

# What the engine and the kernels use of a primitive; writing one takes none of it.
OF_THE_ENGINE = {f"Primitive.{name}" for name in ("call", "conform", "expand", "recomputes", "rejoin", "scales",
                                                  "signature")}
CONSTRUCTORS = {"__init__", "__new__", "__init_subclass__"}  # a class's own signature tells of them


def describe(path: str, module: str) -> str:
    """The kind and the signature of what a module has at `path`, such as ``Tensor.reshape``; "absent" for nothing."""
    *outer, name = path.split(".")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # an old place answers with one
            owner: Any = importlib.import_module(module)
            for part in outer:
                owner = getattr(owner, part)
            return _member(owner, name) if inspect.isclass(owner) else _kind(getattr(owner, name))
    except (AttributeError, ImportError):
        return "absent"


def offered(module: str) -> Iterator[str]:
    """The public names of a module now, and the members that its classes have of their own; aliases of types aside."""
    home = importlib.import_module(module)
    for name in getattr(home, "__all__", bound_by(module)):
        value = getattr(home, name, None)
        if get_origin(value) is None:
            yield name
        if inspect.isclass(value) and _is_ours(value):
            yield from (f"{name}.{member}" for member in _members(value))


def record() -> dict[str, dict[str, str]]:
    """The names that were recorded and those that their modules offer now, as far as they are there, described."""
    found = {module: {path: describe(path, module) for path in sorted({*paths, *offered(module)} - OF_THE_ENGINE)}
             for module, paths in RECORDED.items()}
    return {module: {path: text for path, text in paths.items() if text != "absent"} for module, paths in found.items()}


# --- Kinds and signatures ----------------------------------------------------------------------------------


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in OURS


def _members(cls: type) -> set[str]:
    """The public members that a class has of its own or from classes which are not public; and its operators."""
    public = [base for base in cls.__mro__[1:] if _is_ours(base) and base.__name__ in PUBLIC]
    inherited = {base for other in public for base in other.__mro__}
    sources = [base for base in cls.__mro__ if _is_ours(base) and base not in inherited]
    members = {name: value for base in sources for name, value in vars(base).items()}
    operators = {name for name, value in members.items() if name.endswith("__") and inspect.isfunction(value)}
    fields = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    generated = bool(fields) or issubclass(cls, tuple)
    return {name for name in {*members, *fields} if not name.startswith("_")} \
        | (set() if generated else operators - CONSTRUCTORS)


def _member(cls: type, name: str) -> str:
    """The description of a member of a class."""
    if dataclasses.is_dataclass(cls) and name in {field.name for field in dataclasses.fields(cls)}:
        return "field"
    found = inspect.getattr_static(cls, name)
    if isinstance(found, staticmethod | classmethod):
        return f"{type(found).__name__}{_signature(found.__func__)}"
    if isinstance(found, cached_property):
        return "property"
    if isinstance(found, property):
        return "property" if found.fset is None else "property that can be set"
    if isinstance(found, types.MemberDescriptorType) or type(found).__name__ == "_tuplegetter":
        return "attribute"
    return f"method{_signature(found)}" if callable(found) and not inspect.isclass(found) else _kind(found)


def _kind(value: Any) -> str:
    """The description of a value of a module: a primitive is a function here."""
    if inspect.ismodule(value):
        return "module"
    if inspect.isclass(value):
        bases = [base for base in value.__mro__[1:] if base is not object]
        ours = [base.__name__ for base in bases if _is_ours(base) and base.__name__ in PUBLIC]
        pythons = [base.__name__ for base in bases if base.__module__ == "builtins"]
        kinds = ours or pythons
        return f"class{_signature(value)}{f', subclass of {kinds[0]}' if kinds else ''}"
    return f"function{_signature(value)}" if callable(value) else type(value).__name__


def _signature(value: Any) -> str:
    """The parameters: names, kinds and defaults."""
    if inspect.isclass(value) and "__init__" not in (own := _written(value)) and "__new__" not in own:
        return "(…)"  # Python's own, such as an exception's
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    parameters = [p.replace(annotation=p.empty, default=p.default if p.default is p.empty else _Default(p.default))
                  for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def _written(cls: type) -> set[str]:
    """The names in the bodies of a class and its bases, but for those of Python's classes."""
    return {name for base in cls.__mro__ if base.__module__ != "builtins" for name in vars(base)}


class _Default:
    """A default whose ``repr`` is the same wherever its function stands and in every process."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        value = self.value
        if isinstance(value, partial) or (callable(value) and not inspect.isclass(value)):
            return str(getattr(value, "__name__", type(value).__name__))
        text = value.__qualname__ if inspect.isclass(value) else repr(value)
        return f"<{type(value).__name__}>" if " object at 0x" in text else text


if __name__ == "__main__":
    RECORD.write_text(json.dumps(record(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
