"""Modules that hold others: ModuleList (to loop over) and Sequential (one after the other)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from minigrad.nn.module import Module


class ModuleList(Module):
    """A list of modules, under the names ``"0"``, ``"1"``, …, whose parameters are found. Loop over it:

    ```python
    self.layers = ModuleList(EncoderLayer(config) for _ in range(6))
    for layer in self.layers:
        x = layer(x, mask)
    ```
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns self."""
        self._set(len(self), module)
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self)

    __iter__ = Module.children

    def __getitem__(self, index: int | slice) -> Any:
        modules = list(self)
        if isinstance(index, slice):
            part = type(self).__new__(type(self))
            ModuleList.__init__(part, modules[index])
            return part
        return modules[index]

    def __setitem__(self, index: int, module: Module) -> None:
        self._set(range(len(self))[index], module)

    def _set(self, number: int, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: expected a Module, got {type(module).__name__}")
        setattr(self, str(number), module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Not defined: a list does not say how its modules are connected."""
        raise TypeError("ModuleList cannot be called; loop over its modules, or use Sequential")


class Sequential(ModuleList):
    """The `modules` applied one after the other: ``Sequential(f, g)(x)`` is ``g(f(x))``."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, x: Any) -> Any:
        """Hand `x` through all of them."""
        for module in self:
            x = module(x)
        return x
