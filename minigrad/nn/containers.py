"""Modules that hold others: ModuleList (to loop over), Sequential (one after the other), ModuleDict (by name); and
ParameterList, which holds parameters."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Self, overload

from minigrad.nn.module import Module
from minigrad.nn.parameter import Parameter


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


class ModuleDict(Module):
    """The `modules` by name, read like a dictionary. It has no ``forward``: say which module is meant.

    ```python
    self.heads = ModuleDict({"translate": Linear(64, 1000), "classify": Linear(64, 2)})
    logits = self.heads[task](x)
    ```
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        super().__init__()
        self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Put in every module of a mapping, or of pairs of name and module."""
        for name, module in dict(modules).items():
            self[name] = module

    def _modules(self) -> dict[str, Module]:
        return dict(self.named_children())

    def _known(self, name: str) -> str:
        if name not in self:
            raise KeyError(f"ModuleDict: there is no {name!r}; there are {', '.join(map(repr, self)) or 'none'}")
        return name

    def __getitem__(self, name: str) -> Any:
        return getattr(self, self._known(name))

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"ModuleDict[{name!r}]: expected a Module, got {type(module).__name__}")
        if not isinstance(name, str):
            raise TypeError(f"ModuleDict: names must be strings, got {type(name).__name__}")
        if not name or "." in name or (hasattr(self, name) and name not in self):
            raise KeyError(f"ModuleDict: {name!r} cannot be a name; it must not be empty, have a dot in it, or be an "
                           "attribute of every module")
        setattr(self, name, module)

    def __delitem__(self, name: str) -> None:
        delattr(self, self._known(name))

    def __len__(self) -> int:
        return len(self._modules())

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules())

    def __contains__(self, name: object) -> bool:
        return name in self._modules()

    def keys(self) -> KeysView[str]:
        """The names, in the order in which they were put in."""
        return self._modules().keys()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules().values()

    def items(self) -> ItemsView[str, Module]:
        """Names and modules."""
        return self._modules().items()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Not defined: a dictionary does not say which module is meant."""
        raise TypeError("ModuleDict cannot be called; call one of its modules, as in modules[name](x)")


class ParameterList(Module):
    """A list of parameters that are found, under the names ``"0"``, ``"1"``, …: assigned as a list they would not be.

    Args:
        parameters: parameters, or tensors and arrays of floats to make parameters of.
    """

    def __init__(self, parameters: Iterable[Any] = ()) -> None:
        super().__init__()
        for parameter in parameters:
            self.append(parameter)

    def append(self, parameter: Any) -> Self:
        """Add a parameter at the end; returns self."""
        setattr(self, str(len(self)), parameter if isinstance(parameter, Parameter) else Parameter(parameter))
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self._own_parameters())

    def __iter__(self) -> Iterator[Parameter]:
        return (parameter for _, parameter in self._own_parameters())

    def __getitem__(self, index: int) -> Parameter:
        return list(self)[index]

    def __setitem__(self, index: int, parameter: Any) -> None:
        name = str(range(len(self))[index])
        setattr(self, name, parameter if isinstance(parameter, Parameter) else Parameter(parameter))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Not defined: a list of parameters does nothing by itself."""
        raise TypeError("ParameterList cannot be called; use its parameters in the forward of the module that holds it")
