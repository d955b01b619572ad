"""Which call of which module an operation ran in, and what parameters are called."""

from __future__ import annotations

from typing import Any, NamedTuple

from minigrad.tape import TensorBase


class ModuleCall(NamedTuple):
    """One call of a module.

    Attributes:
        path: dotted, from the `model` that was named, else from the class of the outermost module that was called.
        kind: the name of the module's class.
        number: counts the calls.
        outer: the call that it happened in, or None.
    """

    path: str
    kind: str
    number: int
    outer: ModuleCall | None


class ModuleCalls:
    """Follows the calls of modules as they begin and end.

    Args:
        model: the module from which dotted names are counted.
    """

    def __init__(self, model: Any = None) -> None:
        self._model = model
        self._open: list[tuple[Any, ModuleCall]] = []
        self._names: dict[int, tuple[Any, dict[int, str]]] = {}  # by module's id: itself, and what is below it by id
        self._count = 0

    @property
    def current(self) -> ModuleCall | None:
        """The innermost call that is under way."""
        return self._open[-1][1] if self._open else None

    def begin(self, module: Any) -> None:
        """A call of `module` begins."""
        kind, self._count = type(module).__name__, self._count + 1
        path = self._find(module) or kind
        self._open.append((module, ModuleCall(path, kind, self._count, self.current)))

    def end(self, module: Any) -> None:
        """It ends; so do those inside whose end was not told, because an observer raised."""
        while self._open and self._open.pop()[0] is not module:
            pass

    def name_of(self, tensor: TensorBase) -> str | None:
        """The dotted name of a parameter or buffer of the model, or of a module that is being called."""
        return self._find(tensor)

    def _find(self, thing: Any) -> str | None:
        # A module may be called inside a sibling, by a function that was handed over: so look further out, too.
        if self._model is not None:
            name = self._below(self._model).get(id(thing))
            if name is not None:
                return name or type(thing).__name__
        for module, call in reversed(self._open):
            name = self._below(module).get(id(thing))
            if name:
                return f"{call.path}.{name}" if module is not self._model else name
        return None

    def _below(self, module: Any) -> dict[int, str]:
        if id(module) not in self._names:
            named = [*module.named_modules(), *module.named_parameters(), *module.named_buffers()]
            self._names[id(module)] = module, {id(thing): name for name, thing in reversed(named)}
        return self._names[id(module)][1]
