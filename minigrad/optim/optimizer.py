"""The base of all optimizers: parameter groups, options, the step, and the state as a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minigrad import parallel
from minigrad.arguments import LARGEST, number, whole_number
from minigrad.device import asarray_on, device_of, is_host, on_device_of, to_numpy
from minigrad.engine.watch import span
from minigrad.tensor import Tensor

Options = dict[str, Any]  # of a group, by name
State = dict[str, Any]  # of a parameter: "step", how many updates were made, and arrays by name
Parameters = Iterable[Tensor] | Iterable[Options]  # tensors or groups, see `Optimizer`
Array = Any  # numpy.ndarray, or the array of a CuPy-like module
Work = tuple[Sequence[Any], State, list[Array]]  # constants, the state, which counts updates, and arrays

BLOCK = 1 << 16  # elements, for Adam 1.25 MiB in float32; with smaller ones threads wait for the interpreter's lock
WORTH_A_THREAD = 1 << 20  # elements, which Adam takes 2 ms for; to wake a thread up and to wait for it takes 0.1 ms
BELOW_1 = np.nextafter(1, 0)


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
        state: of each parameter, a dictionary: ``"step"``, how many updates were made, and arrays by name.

    The state is made at the first step and follows the parameters: after `Module.to` has moved the model to another
    device or dtype, the next step moves the state too. float16 parameters have float32 state and arithmetic.

    Raises:
        TypeError: something that is not a tensor.
        ValueError: no parameters; the same parameter twice; a tensor that is not a leaf; an option that is
            unknown or out of range, here or at a step.
    """

    def __init__(self, params: Parameters, defaults: Options) -> None:
        self._name, self.defaults = type(self).__name__, defaults
        self.defaults = self._options(defaults)
        if isinstance(params, Tensor):  # which would be a list of its rows
            raise TypeError(f"{self._name}: params must be a list, or a module's .parameters()")
        given = list[Any](params)
        self.param_groups: list[Options] = []
        self.state: dict[Tensor, State] = {}  # in the order of the parameters
        self.schedule: float | None = None  # what a schedule multiplies the rates with now
        for group in given if given and isinstance(given[0], Mapping) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add a group, ``{"params": tensors, option: value, …}``; its first update is at the scheduled rate."""
        params = list(group.get("params", ()))
        members = [*self.state, *params]
        found = {**self.defaults, **self._options(group), "params": params}
        if self.schedule is not None:
            found.update(initial_lr=found["lr"], lr=found["lr"] * self.schedule)
        for i, p in enumerate(members):
            if not isinstance(p, Tensor):
                raise TypeError(f"{self._name}: parameter {i} must be a Tensor, got {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(f"{self._name}: parameter {i} (shape {p.shape}) is the result of an operation; only "
                                 "leaf tensors can be optimized")
        if len(set(members)) < len(members) or not params:
            raise ValueError(f"{self._name}: a group has no parameters, or a parameter was given twice")
        self.param_groups.append(found)
        self.state.update({p: {"step": 0} for p in params})

    def _options(self, group: Mapping[str, Any]) -> Options:
        """The options of a group as Python numbers, however they were set. Raises the errors of the class."""
        unknown = group.keys() - self.defaults.keys() - {"params", "initial_lr"}
        if unknown:
            raise ValueError(f"{self._name}: unknown option {', '.join(sorted(unknown))}; the options are "
                             f"{', '.join(self.defaults)}")
        found: Options = {}
        for name, value in group.items():
            if name == "betas":
                beta1, beta2 = (float(number(beta, "a beta", self._name, 0, BELOW_1)) for beta in value)
                found[name] = beta1, beta2
            elif name != "params":
                found[name] = float(number(value, name, self._name, 0, LARGEST))
        return found

    # ------------------------------------------------------------------ what a subclass gives

    def state_names(self, options: Options) -> tuple[str, ...]:
        """The arrays to keep for each parameter of a group, which start as zeros; by default there are none."""
        return ()

    def constants(self, step: int, options: Options) -> Sequence[Any]:
        """The numbers in update number `step` = 1, 2, … of a parameter, which `update` multiplies and adds.

        If it is not overridden, they are the options, in the order of the defaults.
        """
        return [options[name] for name in self.defaults]

    def update(self, constants: Sequence[Any], p: Array, g: Array, *state: Array) -> None:
        """Change p and the state in place, all of the shape of g, which is only read. Threads call it together.

        In host memory, `constants` are 0-d arrays of the dtype of g, with which NumPy multiplies fastest.
        """
        raise NotImplementedError

    def together(self, work: Sequence[Work]) -> Sequence[Work]:
        """Update many arrays in one launch, as far as `minigrad.kernels.cuda` can; the rest of the work is returned."""
        return work

    # ------------------------------------------------------------------ the step

    def zero_grad(self) -> None:
        """Set every gradient to None, so that the next backward starts afresh."""
        for p in self.state:
            p.grad = None

    def step(self) -> None:
        """Update every parameter that has a gradient, in place. Others, and their state, stay as they are."""
        with span(f"{self._name}.step"):
            work = list[Work]()
            for group in self.param_groups:
                options, found = self._options(group), dict[Any, Sequence[Any]]()
                names = self.state_names(options)
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state, arrays = self.state[p], self._arrays(p, names)
                    step, kind = state["step"] + 1, arrays[1].dtype.char if is_host(arrays[1]) else ""
                    if (step, kind) not in found:
                        constants = self.constants(step, options)
                        found[step, kind] = [np.array(c, kind) for c in constants] if kind else constants
                    work.append((found[step, kind], state, arrays))
                    p.bump_tick()
            sizes = [arrays[0].size for *_, arrays in work]
            threads = min(parallel.thread_count(), sum(sizes) // WORTH_A_THREAD)
            parallel.run([partial(self._run, share) for share in parallel.shares(work, sizes, max(1, threads))])

    def _arrays(self, p: Tensor, names: Sequence[str]) -> list[Array]:
        """The parameter as it is; its gradient and its state, which starts as zeros, in the dtype of the arithmetic.

        float16 computes in float32, since squares of gradients below 2e-4 would vanish.
        """
        value, state, found = p.data, self.state[p], []
        dtype = np.promote_types(value.dtype, np.float32)
        for name in ("gradient", *names):
            array = p.grad.data if name == "gradient" else state.get(name)
            if array is None:
                array = np.zeros(value.shape, dtype)
            if array.shape != value.shape:
                position = [id(q) for q in self.state].index(id(p))
                raise ValueError(f"{self._name}: parameter {position} has shape {value.shape} and its {name} has "
                                 f"{array.shape}; make a new optimizer after changing the shape of a parameter")
            if array.dtype != dtype or array.device != value.device:
                array = asarray_on(device_of(value), array, dtype)
            found.append(array)
        state.update(zip(names, found[1:], strict=True))
        return [value, *found]

    def _run(self, work: Sequence[Work]) -> None:
        """Update in blocks; a parameter that is not contiguous, or not in the dtype of the arithmetic, in a copy."""
        for constants, state, (value, gradient, *arrays) in self.together(work):
            with on_device_of(value):
                p = value.astype(gradient.dtype, order="C", copy=False)
                if p.ndim and (p.size <= BLOCK or not is_host(p)):
                    self.update(constants, p, gradient, *arrays)
                else:  # never with 0 dimensions, of which NumPy's arithmetic makes numbers
                    for start in range(0, p.size, BLOCK):
                        self.update(constants, *[array.reshape(-1)[start:start + BLOCK]
                                                 for array in (p, gradient, *arrays)])
                if p is not value:
                    value[...] = p
            state["step"] += 1

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        """A snapshot: copies on the host, which later steps do not change.

        Returns:
            ``{"state": {position: {"step": int, name: numpy array, …}}, "param_groups": [{option: value, …}]}``. The
            ``params`` of a group are positions, counted through all groups. Parameters that never had a gradient have
            no state. The arrays fit a safetensors file and the rest fits JSON.
        """
        state = {i: {name: value if name == "step" else to_numpy(value).copy() for name, value in entry.items()}
                 for i, entry in enumerate(self.state.values()) if entry["step"]}
        positions = {p: i for i, p in enumerate(self.state)}
        return {"state": state, "param_groups": [
            {"params": [positions[p] for p in group["params"]], **self._options(group)} for group in self.param_groups]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; ValueError, and nothing changed, if it does not fit.

        Keys of ``"state"`` may be strings and tuples may be lists, as JSON leaves them. Groups are new dictionaries.
        """
        try:
            own, saved = self.param_groups, state_dict["param_groups"]
            sizes = [[len(group["params"]) for group in groups] for groups in (saved, own)]
            if sizes[0] != sizes[1]:
                raise ValueError(f"its groups have other numbers of parameters, {sizes[0]}, than {sizes[1]}")
            groups = [{**group, **self._options(given)} for group, given in zip(own, saved, strict=True)]
            places = {i: (p, group) for given, group in zip(saved, groups, strict=True)
                      for i, p in zip(given["params"], group["params"], strict=True)}
            state: dict[Tensor, State] = {p: {"step": 0} for p in self.state}
            for key, entry in state_dict["state"].items():
                p, group = places[int(key)]
                step = np.asarray(entry["step"]).item()
                state[p]["step"] = whole_number(step, f"step of parameter {key}", "the state", 0)
                for name in self.state_names(group):
                    array = state[p][name] = np.array(entry[name], order="C")
                    if array.shape != p.shape or array.dtype.kind not in "iuf":
                        raise ValueError(f"{name} of parameter {key} must be floating, of shape {p.shape}, got "
                                         f"{array.dtype} {array.shape}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = f"there is no {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"{self._name}.load_state_dict: not a state of this optimizer: {reason}") from error
        self.param_groups, self.state = groups, state
