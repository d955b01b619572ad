"""What reading our sources for names of CuPy finds, and what is learnt on the way from one function for another."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.strict_cupy.lookup import ARRAY, NOTHING, Call, Values, fault


class Use(NamedTuple):
    """A name of CuPy, where it is used, and how it is called, if it is."""

    place: str
    name: str
    call: Call | None


class ArrayUse(NamedTuple):
    """An attribute of something unknown, which may be an array on a GPU, and the keywords if it is called with some."""

    place: str
    function: str
    name: str
    keywords: tuple[str, ...]


class Function(NamedTuple):
    """One of our own functions, a method or a lambda."""

    module: str
    name: str
    parameters: tuple[str, ...]


def lambda_name(node: ast.Lambda) -> str:
    """What a lambda is called here."""
    return f"<lambda {node.lineno}:{node.col_offset}>"


def sources(root: Path) -> dict[str, str]:
    """The texts of the packages' modules, by their dotted names."""
    paths = [path for package in ("minigrad", "transformer") for path in (root / package).rglob("*.py")]
    names = [".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return {name: path.read_text(encoding="utf-8") for name, path in zip(names, paths, strict=True)}


class Facts:
    """The modules that are read, by their dotted names, and all that is known of them so far."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.trees = {module: ast.parse(text) for module, text in texts.items()}
        self.functions: dict[str, list[Function]] = defaultdict(list)
        self.imported: dict[str, dict[str, str]] = {module: {} for module in self.trees}
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                self._note(module, node)
        self.found: dict[str, set[Use | ArrayUse]] = {}  # by module
        self.unread = set(self.trees)
        self._values: dict[tuple[str, ...], Values] = {}
        self._readers: dict[tuple[str, ...], set[str]] = defaultdict(set)

    def _note(self, module: str, node: ast.AST) -> None:
        imported = self.imported[module]
        match node:
            case ast.FunctionDef(args=a) | ast.AsyncFunctionDef(args=a) | ast.Lambda(args=a):
                name = lambda_name(node) if isinstance(node, ast.Lambda) else node.name
                parameters = tuple(p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs))
                self.functions[f"{module}.{name}"].append(Function(module, name, parameters))
            case ast.ImportFrom(names=names, module=source):
                imported |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in names}
            case ast.Import(names=names):
                imported |= {alias.asname: alias.name for alias in names if alias.asname}
                whole = [alias.name for alias in names if not alias.asname]
                imported |= {name: name for path in whole for name in (path, path.partition(".")[0])}

    @property
    def uses(self) -> list[Use]:
        return sorted((use for found in self.found.values() for use in found if isinstance(use, Use)), key=repr)

    @property
    def array_uses(self) -> list[ArrayUse]:
        return sorted((use for found in self.found.values() for use in found if isinstance(use, ArrayUse)), key=repr)

    def faults(self) -> list[str]:
        """What is wrong with the uses of CuPy, each with its place."""
        found = [(use.place, fault(use.name, use.call)) for use in self.uses]
        return [f"{place}: {wrong}" for place, wrong in found if wrong]

    def known(self, reader: str, *key: str) -> Values:
        """What the variable, parameter or result of this key may be; the module that asks is read again if more is."""
        self._readers[key].add(reader)
        return self._values.get(key, NOTHING)

    def learn(self, values: Values, *key: str) -> None:
        """That what has this key may be these values too. An array is not followed: elsewhere it may be a Tensor."""
        before = self._values.get(key, NOTHING)
        self._values[key] = before | values - ARRAY
        if self._values[key] != before:
            self.unread |= self._readers[key]

    def call(self, reader: str, paths: Values, given: list[Values], named: dict[str | None, Values]) -> Values:
        """Tell the functions of ours among these what they are given; what they may return."""
        result = NOTHING
        for function in (f for path in paths for f in self.functions.get(path, [])):
            names = function.parameters[function.parameters[:1] in {("self",), ("cls",)} :]
            for name, values in (*zip(names, given, strict=False), *named.items()):
                self.learn(values, function.module, function.name, "parameter", name or "**")
            result |= self.known(reader, function.module, function.name, "return")
        return result
