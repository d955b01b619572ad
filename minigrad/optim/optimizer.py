"""What all optimizers share: parameter groups, options, the step, and the state as a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minigrad import parallel
from minigrad.arguments import LARGEST, number
from minigrad.device import asarray_on, device_of, is_array, is_host, on_device_of, to_numpy, xp
from minigrad.engine.errors import shown
from minigrad.engine.interpreters import span
from minigrad.tensor import Tensor

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]]  # tensors or groups, see `Optimizer`
Array = Any  # numpy.ndarray, or the array of a CuPy-like module
Update = Callable[..., None]  # changes p and the state in place, and reads g: (p, g, *state) are arrays of one shape

BLOCK = 1 << 15  # elements; in float32 a parameter, its gradient, Adam's state and a temporary make 640 KiB
FLOAT16, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)
WORTH_A_THREAD = 1 << 20  # elements, which Adam takes 2 ms for; to wake a thread up and to wait for it takes 0.1 ms


class Optimizer:
    """Base of the optimizers; a subclass names its options and its state, and gives the update of an array.

    An update is a dozen element-wise operations. Large parameters are updated in blocks, so that all of these but the
    first find their operands in the cache, and threads share the blocks. A GPU updates whole parameters.

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

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        single, module = isinstance(params, Tensor | Mapping), hasattr(params, "parameters")
        if single or module or not isinstance(params, Iterable):
            remedy = "; pass it in a list" * single + "; pass its .parameters()" * module
            raise TypeError(f"{self._name}: params must be an iterable of tensors or of groups, got one "
                            f"{type(params).__name__}{remedy}")
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._state: list[dict[str, Any]] = []  # by position: "step", how many updates there were, and arrays by name
        given: list[Any] = list(params)
        if not given:
            raise ValueError(f"{self._name}: empty parameter list")
        for group in given if all(isinstance(item, Mapping) for item in given) else [{"params": given}]:
            self.add_param_group(group)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _members(self) -> Iterator[tuple[Tensor, dict[str, Any]]]:
        """The parameters by position, each with its group."""
        return ((p, group) for group in self.param_groups for p in group["params"])

    # ------------------------------------------------------------------ what a subclass gives

    def check_options(self, options: dict[str, Any]) -> None:
        """Raise ValueError if an option of a group is out of range, TypeError if it is no number."""
        for option in ("lr", "weight_decay"):
            number(options[option], option, self._name, 0, LARGEST)

    def state_names(self, options: dict[str, Any]) -> tuple[str, ...]:
        """The arrays to keep for each parameter of a group; they start as zeros."""
        raise NotImplementedError(f"{self._name} must give state_names()")

    def rule(self, step: int, options: dict[str, Any], constant: Callable[[float], Any]) -> Update:
        """What updates a parameter for the time `step` = 1, 2, …; several threads call it, each for other blocks.

        `constant` makes of a number what multiplies arrays fastest, in their dtype.
        """
        raise NotImplementedError(f"{self._name} must give rule()")

    # ------------------------------------------------------------------ parameter groups

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add a group ``{"params": tensors, option: value, …}``; options left out take the defaults."""
        if "params" not in group:
            raise ValueError(f"{self._name}: a parameter group needs the key 'params', got {sorted(group)}")
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        if not params:
            raise ValueError(f"{self._name}: empty parameter list in group {len(self.param_groups)}")
        known = {id(p) for p, _ in self._members()}
        for position, p in enumerate(params, start=len(known)):
            if not isinstance(p, Tensor):
                raise TypeError(f"{self._name}: parameter {position} must be a Tensor, got {type(p).__name__}")
            fault = ("is the result of an operation; only leaf tensors can be optimized" if not p.is_leaf else
                     "was given twice; a shared parameter belongs in one group, once" if id(p) in known else None)
            if fault:
                raise ValueError(f"{self._name}: parameter {position} (shape {p.shape}) {fault}")
            known.add(id(p))
        options = {name: value for name, value in group.items() if name != "params"}
        self._check_group(options)
        self.param_groups.append({"params": params, **self.defaults, **options})
        self._state += [{"step": 0} for _ in params]

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
        for p, _ in self._members():
            p.grad = None

    def step(self) -> None:
        """Update every parameter that has a gradient, in place. Others, and their state, stay as they are."""
        with span(f"{self._name}.step"):
            updates, work, counted = dict[Any, Update](), list[tuple[Update, Sequence[Array]]](), []
            for i, (p, group) in enumerate(self._members()):
                if p.grad is None:
                    continue
                arrays, entry = self._arrays(i, p, group), self._state[i]
                dtype, step = _dtype(arrays[0]), entry["step"] + 1
                key = id(group), dtype, arrays[0].device, step
                if key not in updates:
                    constant = partial(np.array, dtype=dtype) if is_host(arrays[0]) else dtype.type
                    updates[key] = self.rule(step, group, constant)
                work += _blocks(updates[key], arrays, dtype)
                counted.append(entry)
                p.bump_tick()
            sizes = [arrays[0].size for _, arrays in work]
            threads = min(parallel.thread_count(), sum(sizes) // WORTH_A_THREAD)
            parallel.run([partial(_run, share) for share in parallel.shares(work, sizes, max(1, threads))])
            for entry in counted:
                entry["step"] += 1

    def _arrays(self, i: int, p: Tensor, group: dict[str, Any]) -> list[Array]:
        """Parameter, gradient and state, which is made or moved to where the parameter is."""
        value, gradient, entry = p.data, p.grad.data, self._state[i]
        shape, dtype, device = value.shape, _dtype(value), value.device
        if gradient.shape != shape:
            raise ValueError(f"{self._name}: parameter {i} has shape {shape}, its gradient {gradient.shape}")
        arrays = [value, gradient]
        for name in self.state_names(group):
            array = entry.get(name)
            if array is None:
                with on_device_of(value):
                    array = entry[name] = xp(value).zeros(shape, dtype)
            elif array.shape != shape:
                raise ValueError(f"{self._name}: parameter {i} has shape {shape} and its {name} has {array.shape}; "
                                 "make a new optimizer after changing the shape of a parameter")
            elif array.dtype != dtype or array.device != device:
                array = entry[name] = asarray_on(device_of(value), array, dtype)
            arrays.append(array)
        return arrays

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        """A snapshot: copies on the host, which later steps do not change.

        Returns:
            ``{"state": {position: {"step": int, name: numpy array, …}}, "param_groups": [{option: value, …,
            "params": [position, …]}]}``, positions counted through all groups. Parameters that never had a
            gradient have no state. The arrays fit a safetensors file and the rest fits JSON.
        """
        state = {i: {"step": entry["step"], **{name: to_numpy(entry[name]).copy() for name in self.state_names(group)}}
                 for i, (entry, (_, group)) in enumerate(zip(self._state, self._members(), strict=True))
                 if entry["step"]}
        positions = iter(range(len(self._state)))
        groups = [{**group, "params": [next(positions) for _ in group["params"]]} for group in self.param_groups]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; ValueError, and nothing changed, if it does not fit.

        Keys of ``"state"`` may be strings and tuples may be lists, as JSON leaves them.
        """
        where = f"{self._name}.load_state_dict"
        try:
            options, state = self._checked(state_dict, where)
        except (AttributeError, KeyError, TypeError) as error:  # values of other kinds
            raise ValueError(f"{where}: not a state that it saved: {error}") from error
        for group, saved_options in zip(self.param_groups, options, strict=True):
            group.update(saved_options)
        self._state = state

    def _checked(self, state_dict: Mapping[str, Any], where: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The options of the groups and the state by position; an error if they do not fit."""
        own, saved = ([len(g["params"]) for g in groups] for groups in (self.param_groups, state_dict["param_groups"]))
        if own != saved:
            raise ValueError(f"{where}: the groups have {own} parameters here and {saved} in the saved state; build "
                             "the optimizer over the same model and groups")
        options = [{name: tuple(value) if isinstance(value, list) else value
                    for name, value in group.items() if name != "params"} for group in state_dict["param_groups"]]
        for group in options:
            self._check_group(group)
        state = [{"step": 0} for _ in self._state]
        members = [(p, self.state_names({**group, **new}))
                   for group, new in zip(self.param_groups, options, strict=True) for p in group["params"]]
        for key, entry in state_dict["state"].items():
            if not 0 <= int(key) < len(members):
                raise ValueError(f"{where}: state for parameter {key}, but there are {len(members)} parameters")
            state[int(key)] = _checked_entry(entry, *members[int(key)], f"{where}: ", f" of parameter {key}")
        return options, state

    def __repr__(self) -> str:
        lines = [f"{self._name} ("]
        for position, group in enumerate(self.param_groups):
            size = sum(p.size for p in group["params"])
            options = ", ".join(f"{name}={value!r}" for name, value in group.items() if name != "params")
            lines.append(f"  ({position}): {len(group['params'])} tensors, {size:,} parameters, {options}")
        return "\n".join([*lines, ")"])


def _dtype(value: Array) -> Any:
    """That of a parameter's state and arithmetic: of float16 it is float32, for squares below 6e-8 would vanish."""
    return FLOAT32 if value.dtype == FLOAT16 else value.dtype


def _blocks(update: Update, arrays: list[Array], dtype: Any) -> list[tuple[Update, Sequence[Array]]]:
    """Blocks of a parameter that lies in the host's memory end to end, with its gradient and state; others whole.

    None has 0 dimensions, of which NumPy's arithmetic makes numbers.
    """
    if arrays[0].dtype != dtype or arrays[1].dtype != dtype:
        update = partial(_by_copy, update, dtype)
    p, size = arrays[0], arrays[0].size
    if p.ndim and (size <= BLOCK or not is_host(p) or not all(array.flags.c_contiguous for array in arrays)):
        return [(update, arrays)]
    flat = [array.reshape(-1) for array in arrays]
    return [(update, [array[start:start + BLOCK] for array in flat]) for start in range(0, size, BLOCK)]


def _by_copy(update: Update, dtype: Any, p: Array, g: Array, *state: Array) -> None:
    """Run the update in another dtype than the parameter's or the gradient's."""
    copy = p.astype(dtype)
    update(copy, g.astype(dtype), *state)
    p[...] = copy


def _run(work: Sequence[tuple[Update, Sequence[Array]]]) -> None:
    for update, arrays in work:
        with on_device_of(arrays[0]):
            update(*arrays)


def _checked_entry(entry: Mapping[str, Any], p: Tensor, names: Sequence[str], where: str, whose: str) -> dict[str, Any]:
    """The saved state of one parameter: its number of updates, and copies of its arrays."""
    if entry.keys() != {"step", *names}:
        raise ValueError(f"{where}the state{whose} needs {sorted({'step', *names})}, the saved one has {sorted(entry)}")
    given = {name: value.data if isinstance(value, Tensor) else value for name, value in entry.items()}
    arrays = {name: to_numpy(value) if is_array(value) else np.asarray(value) for name, value in given.items()}
    for name in names:
        if arrays[name].dtype.kind != "f" or arrays[name].shape != p.shape:
            raise ValueError(f"{where}{name}{whose} must be a floating array of its shape, {p.shape}, got "
                             f"{shown(entry[name])}")
        arrays[name] = arrays[name].astype(_dtype(p), order="C")
    step = arrays["step"]
    if step.shape != () or step.dtype.kind not in "iuf" or step < 0 or step.item() % 1:
        raise ValueError(f"{where}step{whose} must be a number of updates, got {shown(entry['step'])}")
    return {**arrays, "step": int(step)}


def require(name: str, options: Mapping[str, Any], option: str, holds: bool, condition: str) -> None:
    """ValueError naming the option, its value and the condition, unless it `holds`."""
    if not holds:
        raise ValueError(f"{name}: {option} must be {condition}, got {options[option]!r}")
