"""What all optimizers share: parameter groups, options, the step, and the state as a dictionary.

Where the state lies, and how a step visits parameters and state block by block, is `minigrad.optim.storage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from minigrad.arguments import LARGEST, number
from minigrad.device import to_numpy
from minigrad.engine.interpreters import span
from minigrad.optim.storage.packing import Block
from minigrad.optim.storage.skipping import Count, checked_skip
from minigrad.optim.storage.state import Storage, checked_state
from minigrad.tensor import Tensor

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]]  # tensors or groups, see `Optimizer`


class Optimizer:
    """Base of the optimizers; a subclass names its options and its state, and gives the update of one block.

    Args:
        params: tensors, or dictionaries ``{"params": tensors, option: value, …}`` that make a group each.
        defaults: every option with its value for groups that do not give their own.

    Attributes:
        param_groups: a list of dictionaries, ``"params"`` (a list of tensors) and the options of each group.
            Options may be changed between steps, as schedules do with ``"lr"``.

    State is made at the first step and follows the parameters: move the model to another device (or dtype) with
    `Module.to` and the next step moves the state after it. float16 parameters have float32 state and
    arithmetic.

    Raises:
        TypeError: something that is not a tensor.
        ValueError: no parameters; the same parameter twice; a tensor that is not a leaf; an option that is
            unknown or out of range.
    """

    param_groups: list[dict[str, Any]]
    # Faster forms of `update`, registered from outside. Each takes the optimizer and the arguments of `update`, and
    # returns whether it has run.
    bodies: ClassVar[list[Callable[..., bool]]] = []

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        single, module = isinstance(params, Tensor | Mapping), hasattr(params, "parameters")
        if single or module or not isinstance(params, Iterable):
            remedy = "; pass it in a list" * single + "; pass its .parameters()" * module
            raise TypeError(f"{self._name}: params must be an iterable of tensors or of groups, got one "
                            f"{type(params).__name__}{remedy}")
        self.defaults = defaults
        self.param_groups = []
        self._storage = Storage(self._name)
        given: list[Any] = list(params)
        if not given:
            raise ValueError(f"{self._name}: empty parameter list")
        groups = given if all(isinstance(item, Mapping) for item in given) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    @property
    def _name(self) -> str:
        return type(self).__name__

    # ------------------------------------------------------------------ what a subclass gives

    def check_options(self, options: dict[str, Any]) -> None:
        """Raise ValueError if an option of a group is out of range, TypeError if it is no number."""
        for option in ("lr", "weight_decay"):
            number(options[option], option, self._name, 0, LARGEST)

    def state_names(self, options: dict[str, Any]) -> tuple[str, ...]:
        """The arrays to keep for each parameter of a group; they start as zeros."""
        raise NotImplementedError(f"{self._name} must give state_names()")

    def update(self, block: Block, step: Count, options: dict[str, Any]) -> None:
        """Change ``block.p`` and ``block.state`` in place; `step` is 1 at a parameter's first update.

        Where updates may have been skipped on a GPU, `step` is a 0-d float64 array there, to be used without a branch.
        Within `minigrad.parallel.threads`, several threads call it at the same time, each for other blocks.
        """
        raise NotImplementedError(f"{self._name} must give update()")

    # ------------------------------------------------------------------ parameter groups

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add a group ``{"params": tensors, option: value, …}``; options left out take the defaults."""
        if "params" not in group:
            raise ValueError(f"{self._name}: a parameter group needs the key 'params', got {sorted(group)}")
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        if not params:
            raise ValueError(f"{self._name}: empty parameter list in group {len(self.param_groups)}")
        known = {id(p) for p in self._storage.params}
        for position, p in enumerate(params, start=len(known)):
            if not isinstance(p, Tensor):
                raise TypeError(f"{self._name}: parameter {position} must be a Tensor, got {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(
                    f"{self._name}: parameter {position} (shape {p.shape}) is the result of an operation;"
                    " only leaf tensors can be optimized"
                )
            if id(p) in known:
                raise ValueError(
                    f"{self._name}: parameter {position} (shape {p.shape}) was given twice; a shared "
                    "parameter belongs in one group, once"
                )
            known.add(id(p))
        options = {name: value for name, value in group.items() if name != "params"}
        self._check_group(options)
        self.param_groups.append({"params": params, **self.defaults, **options})
        self._storage.add(params)

    def _check_group(self, options: Mapping[str, Any]) -> None:
        unknown = options.keys() - self.defaults.keys() - {"initial_lr"}
        if unknown:
            raise ValueError(
                f"{self._name}: unknown option {', '.join(sorted(unknown))}; the options are {', '.join(self.defaults)}"
            )
        self.check_options({**self.defaults, **options})

    # ------------------------------------------------------------------ the step

    def zero_grad(self) -> None:
        """Set every gradient to None, so that the next backward starts afresh."""
        for p in self._storage.params:
            p.grad = None

    def step(self, skip: Any = None) -> None:
        """Update every parameter that has a gradient, in place. Others, and their state, stay as they are.

        Args:
            skip: where it is True, all parameters, their state and their counts of updates stay as they are, bit for
                bit. A bool; or, for parameters on GPUs, a 0-d boolean array on one of them, for which nothing waits.
        """
        skip = checked_skip(skip, f"{self._name}.step")
        if skip is True:
            return
        with span(f"{self._name}.step"):
            self._storage.follow(self.param_groups, self.state_names)
            self._storage.update(self._update, self.param_groups, skip)

    def _update(self, block: Block, step: Count, options: dict[str, Any]) -> None:
        if not any(body(self, block, step, options) for body in self.bodies):
            self.update(block, step, options)

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        """A snapshot: copies on the host, which later steps do not change.

        Returns:
            ``{"state": {position: {"step": int, name: numpy array, …}}, "param_groups": [{option: value, …,
            "params": [position, …]}]}``, positions counted through all groups. Parameters that never had a
            gradient have no state. The arrays fit a safetensors file and the rest fits JSON.
        """
        arrays = self._storage.arrays()
        state = {
            i: {"step": step, **{name: to_numpy(array).copy() for name, array in arrays[i].items()}}
            for i, step in enumerate(self._storage.counts.read())
            if step > 0
        }
        groups, position = [], 0
        for group in self.param_groups:
            count = len(group["params"])
            groups.append({**group, "params": list(range(position, position + count))})
            position += count
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; ValueError, and nothing changed, if it does not fit.

        Keys of ``"state"`` may be strings and tuples may be lists, as JSON leaves them.
        """
        try:
            options, state = self._checked(state_dict, f"{self._name}.load_state_dict")
        except (AttributeError, KeyError, TypeError) as error:  # values of other kinds
            raise ValueError(f"{self._name}.load_state_dict: not a state that it saved: {error}") from error
        for group, saved_options in zip(self.param_groups, options, strict=True):
            group.update(saved_options)
        self._storage.load(self.param_groups, self.state_names, state)

    def _checked(self, state_dict: Mapping[str, Any], where: str) -> tuple[list[dict[str, Any]], dict[int, Any]]:
        """The options of the groups and the state by position; an error if they do not fit."""
        saved_groups = state_dict["param_groups"]
        own, saved = [len(g["params"]) for g in self.param_groups], [len(g["params"]) for g in saved_groups]
        if own != saved:
            raise ValueError(f"{where}: the groups have {own} parameters here and {saved} in the saved state; build "
                             "the optimizer over the same model and groups")
        options = [
            {name: tuple(value) if isinstance(value, list) else value for name, value in group.items()
             if name != "params"}
            for group in saved_groups
        ]
        for group in options:
            self._check_group(group)
        expected = [
            ({"step", *self.state_names({**group, **new})}, p.shape)
            for group, new in zip(self.param_groups, options, strict=True)
            for p in group["params"]
        ]
        return options, checked_state(state_dict["state"], expected, where)

    def __repr__(self) -> str:
        lines = [f"{self._name} ("]
        for position, group in enumerate(self.param_groups):
            size = sum(int(np.prod(p.shape, dtype=np.int64)) for p in group["params"])
            options = ", ".join(f"{name}={value!r}" for name, value in group.items() if name != "params")
            lines.append(f"  ({position}): {len(group['params'])} tensors, {size:,} parameters, {options}")
        return "\n".join([*lines, ")"])


def require(name: str, options: Mapping[str, Any], option: str, holds: bool, condition: str) -> None:
    """ValueError naming the option, its value and the condition, unless it `holds`."""
    if not holds:
        raise ValueError(f"{name}: {option} must be {condition}, got {options[option]!r}")
