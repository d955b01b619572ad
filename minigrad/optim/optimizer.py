"""What all optimizers share: parameter groups, options, the step, and the state as a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from minigrad import parallel
from minigrad.arguments import LARGEST, number
from minigrad.device import asarray_on, device_of, is_host, on_device_of, to_numpy
from minigrad.engine.errors import shown
from minigrad.engine.watch import span
from minigrad.tensor import Tensor

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]]  # tensors or groups, see `Optimizer`
Array = Any  # numpy.ndarray, or the array of a CuPy-like module
Update = Callable[..., None]  # changes p and the state in place, and reads g: (p, g, *state), of one shape
Work = tuple[Update, list[Array], dict[str, Any]]  # and the state, which counts the updates

BLOCK = 1 << 16  # elements, for Adam 1.25 MiB in float32; with smaller ones threads wait for the interpreter's lock
WORTH_A_THREAD = 1 << 20  # elements, which Adam takes 2 ms for; to wake a thread up and to wait for it takes 0.1 ms
FLOAT16, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)


class Group(dict[str, Any]):
    """The parameters and the options of a group: what is set to a number of any kind is one of Python's."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.update(options)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value if name == "params" else _option(value, name))

    def update(self, *options: Any, **more: Any) -> None:
        """As of a dictionary."""
        for name, value in dict(*options, **more).items():
            self[name] = value


def _option(value: Any, name: str) -> Any:
    """A number, one of NumPy's or what an array or a tensor holds as Python's; the same within a pair."""
    if isinstance(value, list | tuple):
        return tuple([_option(part, name) for part in value])
    return number(value, name, "an option") if isinstance(value, Real) or getattr(value, "shape", 0) == () else value


class Optimizer:
    """Base of the optimizers; a subclass names its options and its state, and gives the update of an array.

    An update is a dozen element-wise operations. It goes through a large parameter in blocks, so that all of these but
    the first find their operands in the cache; a GPU takes it whole. Threads share the parameters.

    Args:
        params: tensors, or dictionaries ``{"params": tensors, option: value, …}`` that make a group each.
        defaults: every option with its value for groups that do not give their own.

    Attributes:
        param_groups: a list of dictionaries, ``"params"`` (a list of tensors) and the options of each group.
            Options may be changed between steps, as schedules do with ``"lr"``.
        schedule: sets the rate of a group that joins; a `Scheduler` gives it.

    State is made at the first step and follows the parameters: move the model to another device (or dtype) with
    `Module.to` and the next step moves the state after it. float16 parameters have float32 state and
    arithmetic.

    Raises:
        TypeError: something that is not a tensor.
        ValueError: no parameters; the same parameter twice; a tensor that is not a leaf; an option that is
            unknown or out of range.
    """

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor | Mapping) or not isinstance(params, Iterable):
            raise TypeError(f"{self._name}: params must be tensors or groups in a list, or a module's .parameters(), "
                            f"got {type(params).__name__}")
        self.defaults = defaults
        self.schedule: Callable[[dict[str, Any]], None] | None = None
        self.param_groups: list[dict[str, Any]] = []
        self._state: list[dict[str, Any]] = []  # by position: "step", how many updates there were, and arrays by name
        given: list[Any] = list(params)
        groups = given if given and all(isinstance(item, Mapping) for item in given) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)
        self.defaults = Group(defaults)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _members(self) -> Iterator[tuple[Tensor, dict[str, Any]]]:
        """The parameters by position, each with its group."""
        return ((p, group) for group in self.param_groups for p in group["params"])

    # ------------------------------------------------------------------ what a subclass gives

    def check_options(self, options: dict[str, Any]) -> None:
        """Raise ValueError if an option of a group is out of range, TypeError if it is no number."""
        for name in ("lr", "weight_decay", "momentum", "eps"):
            if name in options:
                number(options[name], name, self._name, 0, LARGEST)

    def state_names(self, options: dict[str, Any]) -> tuple[str, ...]:
        """The arrays to keep for each parameter of a group; they start as zeros."""
        raise NotImplementedError

    def rule(self, step: int, options: dict[str, Any], constant: Callable[[float], Any]) -> Update:
        """The function that makes update number `step` = 1, 2, … of a parameter; several threads call it at a time.

        `constant` makes of a number what the arrays are multiplied with fastest, in their dtype.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------ parameter groups

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add a group ``{"params": tensors, option: value, …}``; options left out take the defaults."""
        params = group.get("params", ())
        params = [params] if isinstance(params, Tensor) else list(params)
        if not params:
            raise ValueError(f"{self._name}: empty parameter list, 'params' of group {len(self.param_groups)}")
        known = {id(p) for p, _ in self._members()}
        for position, p in enumerate(params, start=len(known)):
            if not isinstance(p, Tensor):
                raise TypeError(f"{self._name}: parameter {position} must be a Tensor, got {type(p).__name__}")
            fault = ("is the result of an operation; only leaf tensors can be optimized" if not p.is_leaf else
                     "was given twice; a shared parameter belongs in one group, once" if id(p) in known else None)
            if fault:
                raise ValueError(f"{self._name}: parameter {position} (shape {p.shape}) {fault}")
            known.add(id(p))
        checked = self._checked_group({**self.defaults, **group, "params": params})
        if self.schedule is not None:
            self.schedule(checked)
        self.param_groups.append(checked)
        self._state += [{"step": 0} for _ in params]

    def _checked_group(self, group: dict[str, Any]) -> dict[str, Any]:
        unknown = group.keys() - self.defaults.keys() - {"params", "initial_lr"}
        if unknown:
            raise ValueError(f"{self._name}: unknown option {', '.join(sorted(unknown))}; the options are "
                             f"{', '.join(self.defaults)}")
        self.check_options(group)
        return Group(group)

    # ------------------------------------------------------------------ the step

    def zero_grad(self) -> None:
        """Set every gradient to None, so that the next backward starts afresh."""
        for p, _ in self._members():
            p.grad = None

    def step(self) -> None:
        """Update every parameter that has a gradient, in place. Others, and their state, stay as they are."""
        with span(f"{self._name}.step"):
            updates, work = dict[Any, Update](), list[Work]()
            for i, (p, group) in enumerate(self._members()):
                if p.grad is None:
                    continue
                arrays, state = self._arrays(i, p, group), self._state[i]
                host, dtype, step = is_host(arrays[1]), arrays[1].dtype, state["step"] + 1
                key = id(group), host, dtype, step
                if key not in updates:
                    updates[key] = self.rule(step, group, partial(np.array, dtype=dtype) if host else dtype.type)
                work.append((updates[key], arrays, state))
                p.bump_tick()
            sizes = [arrays[0].size for _, arrays, _ in work]
            threads = min(parallel.thread_count(), sum(sizes) // WORTH_A_THREAD)
            parallel.run([partial(_run, share) for share in parallel.shares(work, sizes, max(1, threads))])

    def _arrays(self, i: int, p: Tensor, group: dict[str, Any]) -> list[Array]:
        """The parameter as it is; its gradient and its state, made if there is none, in the dtype of the arithmetic.

        That of float16 is float32, for squares of gradients below 2e-4 would vanish.
        """
        value, state = p.data, self._state[i]
        shape, device, dtype = value.shape, value.device, FLOAT32 if value.dtype == FLOAT16 else value.dtype
        arrays = {"gradient": p.grad.data}
        for name in self.state_names(group):
            arrays[name] = state[name] if name in state else np.zeros(shape, dtype)
        for name, array in arrays.items():
            if array.shape != shape:
                raise ValueError(f"{self._name}: parameter {i} has shape {shape} and its {name} has {array.shape}; "
                                 "make a new optimizer after changing the shape of a parameter")
            if array.dtype != dtype or array.device != device:
                arrays[name] = asarray_on(device_of(value), array, dtype)
        gradient = arrays.pop("gradient")
        state.update(arrays)
        return [value, gradient, *arrays.values()]

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        """A snapshot: copies on the host, which later steps do not change.

        Returns:
            ``{"state": {position: {"step": int, name: numpy array, …}}, "param_groups": [{option: value, …}]}``. The
            ``params`` of a group are positions, counted through all groups. Parameters that never had a gradient have
            no state. The arrays fit a safetensors file and the rest fits JSON.
        """
        state = {i: {name: value if name == "step" else to_numpy(value).copy() for name, value in entry.items()}
                 for i, entry in enumerate(self._state) if entry["step"]}
        positions = iter(range(len(self._state)))
        groups = [{**group, "params": [next(positions) for _ in group["params"]]} for group in self.param_groups]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; ValueError, and nothing changed, if it does not fit.

        Keys of ``"state"`` may be strings and tuples may be lists, as JSON leaves them.
        """
        try:
            saved = state_dict["param_groups"]
            sizes, saved_sizes = ([len(group["params"]) for group in groups] for groups in (self.param_groups, saved))
            if sizes != saved_sizes:
                raise ValueError(f"the groups have {sizes} parameters here and {saved_sizes} in the saved state; build "
                                 "the optimizer over the same model and groups")
            groups = [self._checked_group({**own, **group, "params": own["params"]})
                      for own, group in zip(self.param_groups, saved, strict=True)]
            members = [(p, self.state_names(group)) for group in groups for p in group["params"]]
            state = [{"step": 0} for _ in members]
            for key, entry in state_dict["state"].items():
                if not 0 <= int(key) < len(members):
                    raise ValueError(f"there is state for parameter {key}, but there are {len(members)} parameters")
                state[int(key)] = _checked_entry(entry, *members[int(key)], f"parameter {key}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self._name}.load_state_dict: not a state of this optimizer: {error}") from error
        for own, group in zip(self.param_groups, groups, strict=True):
            own.update(group)
        self._state = state

    def __repr__(self) -> str:
        lines = [f"{self._name} ("]
        for position, group in enumerate(self.param_groups):
            size = sum(p.size for p in group["params"])
            options = ", ".join(f"{name}={value!r}" for name, value in group.items() if name != "params")
            lines.append(f"  ({position}): {len(group['params'])} tensors, {size:,} parameters, {options}")
        return "\n".join([*lines, ")"])


def _run(work: Sequence[Work]) -> None:
    """Update block by block; a parameter whose memory is not flat, or not in the dtype of the arithmetic, in a copy."""
    for update, (value, gradient, *arrays), state in work:
        with on_device_of(value):
            p = value.astype(gradient.dtype, order="C", copy=False)
            if p.ndim and (p.size <= BLOCK or not is_host(p)):
                update(p, gradient, *arrays)
            else:  # never with 0 dimensions, of which NumPy's arithmetic makes numbers
                flat = [array.reshape(-1) for array in (p, gradient, *arrays)]
                for start in range(0, p.size, BLOCK):
                    update(*[array[start:start + BLOCK] for array in flat])
            if p is not value:
                value[...] = p
        state["step"] += 1


def _checked_entry(entry: Mapping[str, Any], p: Tensor, names: Sequence[str], whose: str) -> dict[str, Any]:
    """The saved state of one parameter: its number of updates, and copies of its arrays."""
    shapes, checked = {"step": (), **dict.fromkeys(names, p.shape)}, dict[str, Any]()
    if not entry.keys() >= shapes.keys():
        raise ValueError(f"{whose} needs {sorted(shapes)}, the saved state has {sorted(entry)}")
    for name, shape in shapes.items():
        array = np.array(entry[name], order="C")
        fits = array.shape == shape and array.dtype.kind in "iuf"
        if not fits or (name == "step" and not 0 <= array == array // 1):
            kind = "a number of updates" if name == "step" else f"floating, of shape {shape}"
            raise ValueError(f"{name} of {whose} must be {kind}, got {shown(entry[name])}")
        checked[name] = int(array) if name == "step" else array
    return checked
