"""The public names and their signatures, as text; ``python -m tests.public_names`` records those of this version.

``public_names.json`` maps a module to its names. Members of a class follow it as ``Class.member``; what a class
inherits from another public class is listed there alone. Annotations are left out: the spelling of a type may change.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import types
import warnings
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, get_origin

from tests.deep_imports import bound_by

RECORD = Path(__file__).with_suffix(".json")
OURS = ("minigrad", "transformer")

# What the README, the docs and the examples import, and the modules that they speak of.
MODULES = (
    *("minigrad", "minigrad.checkpoint", "minigrad.device", "minigrad.func"),
    *("minigrad.functional", "minigrad.functional.windows", "minigrad.gpu", "minigrad.inspect"),
    *("minigrad.kernels", "minigrad.nn", "minigrad.nn.init", "minigrad.optim", "minigrad.parallel"),
    *("minigrad.primitive", "minigrad.random"),
    *("transformer", "transformer.attention", "transformer.checkpoints", "transformer.cli", "transformer.cli.command"),
    *("transformer.config", "transformer.data", "transformer.decode", "transformer.explain"),
    *("transformer.explain.translation", "transformer.layers", "transformer.masks", "transformer.memory"),
    *("transformer.model", "transformer.options", "transformer.parallel", "transformer.plots"),
    *("transformer.plots.figure", "transformer.positions", "transformer.pytorch", "transformer.recipes"),
    *("transformer.threads", "transformer.trace", "transformer.train", "transformer.training"),
    "transformer.translator",
)
# What the engine and the kernels use of a primitive; writing one takes none of it.
OF_THE_ENGINE = {f"Primitive.{name}" for name in ("call", "conform", "expand", "recomputes", "rejoin", "scales",
                                                  "signature")}

# Members of every class, or made by Python for a class of some kind.
_PYTHONS_OWN = frozenset({
    *("__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__qualname__", "__slots__", "__init__"),
    *("__new__", "__init_subclass__", "__parameters__", "__orig_bases__", "__type_params__", "__abstractmethods__"),
    *("__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
    *("__classcell__", "__getattribute__", "__protocol_attrs__", "__non_callable_proto_members__"),
})


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


def public(module: str) -> list[str]:
    """The public names of a module: those in ``__all__``, or else those that it binds; aliases of types aside."""
    home = importlib.import_module(module)
    names = getattr(home, "__all__", bound_by(module))
    return sorted(name for name in names if get_origin(getattr(home, name, None)) is None)


def record() -> dict[str, dict[str, str]]:
    """Module -> path -> description, for each public name that there is now."""
    found: dict[str, dict[str, str]] = {}
    listed: set[type] = set()
    for module in MODULES:
        paths = []
        for name in public(module):
            paths.append(name)
            value = getattr(importlib.import_module(module), name)
            if inspect.isclass(value) and value in public_classes() - listed:
                listed.add(value)
                paths += [f"{name}.{member}" for member in sorted(_members(value))]
        found[module] = {path: describe(path, module) for path in paths if path not in OF_THE_ENGINE}
    return found


@cache
def public_classes() -> frozenset[type]:
    """The classes of ours among the public names."""
    found = set[type]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for module in MODULES:
            with suppress(ImportError):  # each name that it had is reported
                values = [getattr(importlib.import_module(module), name, None) for name in public(module)]
                found |= {value for value in values if inspect.isclass(value) and _is_ours(value)}
    return frozenset(found)


# --- Kinds and signatures ----------------------------------------------------------------------------------


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in OURS


def _members(cls: type) -> set[str]:
    """The members that a class has of its own or from classes which are not public."""
    inherited = {base for other in public_classes() - {cls} if issubclass(cls, other) for base in other.__mro__}
    sources = [base for base in cls.__mro__ if _is_ours(base) and base not in inherited]
    names = {name for base in sources for name in vars(base)} - _PYTHONS_OWN
    names |= {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    generated = dataclasses.is_dataclass(cls) or issubclass(cls, tuple)
    return {name for name in names
            if not name.startswith("_") or (name.startswith("__") and name.endswith("__") and not generated)}


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
        ours = [base.__name__ for base in bases if base in public_classes()]
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
