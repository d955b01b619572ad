"""Which call of which module an operation ran in, and what parameters are called."""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minigrad.engine.interpreters import Interpreter
from minigrad.engine.node import Node, TensorBase

RECOMPUTED = "checkpoint (computed again)"


@dataclass(frozen=True, repr=False)
class ModuleCall:
    """One call of a module.

    Attributes:
        path: dotted, from the `model` that was named, else from the class of the outermost module that was called.
        kind: the name of the module's class.
        number: counts the calls.
        outer: the call that it happened in, or None.

    What a checkpoint computes again counts as a call, too: its path and kind are "checkpoint (computed again)".
    """

    path: str
    kind: str
    number: int
    outer: ModuleCall | None

    def __repr__(self) -> str:
        return f"<ModuleCall {self.number}: {self.label}>"

    @property
    def name(self) -> str:
        """Its path, from the nearest module around it that it is a part of."""
        for call in self.chain[-2::-1]:
            if self.path.startswith(call.path + "."):
                return self.path.removeprefix(call.path + ".")
        return self.path

    @property
    def label(self) -> str:
        """Its path and, if that says something else, its kind."""
        return self.path if self.path == self.kind else f"{self.path} ({self.kind})"

    @property
    def chain(self) -> list[ModuleCall]:
        """The calls around it, the outermost first, and itself."""
        chain: list[ModuleCall] = []
        call: ModuleCall | None = self
        while call is not None:
            chain.append(call)
            call = call.outer
        return chain[::-1]


class _Open(threading.local):
    """The calls that are under way in one thread, the innermost last."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ModuleCall]] = []


class ModuleCalls:
    """Follows the calls of modules as they begin and end, those of each thread apart.

    Args:
        model: the module from which dotted names are counted.
    """

    def __init__(self, model: Any = None) -> None:
        self._model = model
        self._open = _Open()
        self._names: dict[int, tuple[Any, dict[int, str]]] = {}  # by module's id: itself, and what is below it by id
        self._numbers = itertools.count(1)
        self._kept: weakref.WeakKeyDictionary[Node, list[tuple[Any, ModuleCall]]] = weakref.WeakKeyDictionary()

    @property
    def current(self) -> ModuleCall | None:
        """The innermost call that is under way."""
        return self._open.calls[-1][1] if self._open.calls else None

    @property
    def path(self) -> str:
        """That of `current`, "" outside of all modules."""
        return "" if self.current is None else self.current.path

    def begin(self, module: Any) -> ModuleCall:
        """A call of `module` begins."""
        kind = type(module).__name__
        path = self._find(module) or kind
        call = ModuleCall(path, kind, next(self._numbers), self.current)
        self._open.calls.append((module, call))
        return call

    def end(self, module: Any) -> None:
        """It ends; so do those inside it that have not ended, because an interpreter raised as they began."""
        while self._open.calls and self._open.calls.pop()[0] is not module:
            pass

    def keep(self, checkpoint: Node) -> None:
        """`checkpoint` was recorded: the calls around it are those in which it will be computed again."""
        self._kept[checkpoint] = list(self._open.calls)

    @contextlib.contextmanager
    def inside(self, node: Node) -> Iterator[None]:
        """A block in which the rules of `node` run. A checkpoint is computed again, in the calls around its forward."""
        if not node.primitive.recomputes:
            yield
            return
        here, before = self._open, self._open.calls
        here.calls = list(self._kept.get(node, []))
        here.calls.append((None, ModuleCall(RECOMPUTED, RECOMPUTED, next(self._numbers), self.current)))
        try:
            yield
        finally:
            here.calls = before

    def name_of(self, tensor: TensorBase) -> str | None:
        """The dotted name of a parameter or buffer of the model, or of a module that is being called."""
        return self._find(tensor)

    def _find(self, thing: Any) -> str | None:
        # A module may be called inside a sibling, by a function that was handed over: so look further out, too.
        if self._model is not None:
            name = self._below(self._model).get(id(thing))
            if name is not None:
                return name or type(thing).__name__
        for module, call in reversed([(module, call) for module, call in self._open.calls if module is not None]):
            name = self._below(module).get(id(thing))
            if name:
                return f"{call.path}.{name}" if module is not self._model else name
        return None

    def _below(self, module: Any) -> dict[int, str]:
        if id(module) not in self._names:
            named = [*module.named_modules(), *module.named_parameters(), *module.named_buffers()]
            self._names[id(module)] = module, {id(thing): name for name, thing in reversed(named)}
        return self._names[id(module)][1]


class ModuleWatcher(Interpreter):
    """Base of the tools that say in which module something happens.

    Args:
        model: the module from which dotted names are counted.
    """

    def __init__(self, model: Any = None) -> None:
        self.calls = ModuleCalls(model)

    def module_begins(self, module: Any) -> None:
        """A call of `module` begins."""
        self.calls.begin(module)

    def module_ends(self, module: Any) -> None:
        """It has ended, or raised."""
        self.calls.end(module)
