"""Modules that hold others: ModuleList (to loop over) and Sequential (one after the other)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, overload

from minigrad.nn.module import Module


class Numbered(Module):
    """Modules under the names ``"0"``, ``"1"``, …, read like a list. Base of the containers."""

    def __init__(self, modules: Iterable[Module]) -> None:
        super().__init__()
        self.extend(modules)

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns self."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: expected a Module, got {type(module).__name__}")
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add several modules at the end; returns self."""
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self.children())

    __iter__ = Module.children

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            part = type(self).__new__(type(self))
            Numbered.__init__(part, list(self)[index])
            return part
        return getattr(self, self._name_at(index))

    def __setitem__(self, index: int, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: expected a Module, got {type(module).__name__}")
        setattr(self, self._name_at(index), module)

    def _name_at(self, index: int) -> str:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"{type(self).__name__}: index {index} is out of range for {count} modules")
        return str(index % count)


class ModuleList(Numbered):
    """A list of modules whose parameters are found. It has no ``forward``: loop over it.

    ```python
    self.layers = ModuleList(EncoderLayer(config) for _ in range(6))
    for layer in self.layers:
        x = layer(x, mask)
    ```
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__(modules)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Not defined: a list does not say how its modules are connected."""
        raise TypeError("ModuleList cannot be called; loop over its modules, or use Sequential")


class Sequential(Numbered):
    """The `modules` applied one after the other: ``Sequential(f, g)(x)`` is ``g(f(x))``."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, x: Any) -> Any:
        """Hand `x` through all of them."""
        for module in self:
            x = module(x)
        return x
