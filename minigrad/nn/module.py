"""Module: a function with parameters.

A module keeps everything as plain attributes. Whatever attribute is a `Parameter` is a parameter, whatever is
a `Module` is a child, and the names given to `register_buffer` are buffers. The methods here walk over those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any, Self

from minigrad.arguments import numeric_dtype
from minigrad.device import asarray_on, parse_device
from minigrad.device.local import evaluation
from minigrad.engine.watch import NOTHING, around, watched
from minigrad.nn.hooks import ModuleHooks
from minigrad.nn.parameter import Parameter
from minigrad.nn.state import Keys, match_state
from minigrad.tensor import Tensor
from minigrad.tensor.hooks import RemovableHandle


class Module:
    """Base of every layer and model; a subclass makes its parts in ``__init__`` and computes in ``forward``.

    ```python
    class Scale(Module):
        def __init__(self, features):
            super().__init__()
            self.weight = Parameter(np.ones(features, np.float32))

        def forward(self, x):
            return x * self.weight
    ```
    """

    _hooks: ModuleHooks | None = None  # made for the first hook
    _buffers: Mapping[str, bool] = {}  # name -> whether it is saved in the state_dict

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; called by ``module(...)``."""
        raise NotImplementedError(f"{type(self).__name__} must define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of ``forward`` with the same arguments, with the hooks around it."""
        if self._hooks is not None or around.get() is not NOTHING:
            forward = self.forward if self._hooks is None else partial(self._hooks.call, self)
            return watched(self, (), lambda: forward(*args, **kwargs))
        return self.forward(*args, **kwargs)

    # ------------------------------------------------------------------ attributes

    def __setattr__(self, name: str, value: Any) -> None:
        before = vars(self).get(name)
        kept: Any = Parameter if isinstance(before, Parameter) else Tensor if name in self._buffers else object
        if not isinstance(value, kept | None):
            raise TypeError(f"{type(self).__name__}.{name} can be replaced by a {kept.__name__} or None, got "
                            f"{type(value).__name__}; change its values with {name}.copy_(...)")
        parts: Any = value.values() if isinstance(value, dict) else value
        if isinstance(value, list | tuple | dict) and any(isinstance(part, Parameter | Module) for part in parts):
            raise TypeError(f"{type(self).__name__}.{name}: parameters and modules inside a {type(value).__name__} "
                            "would not be found by parameters(); use a ModuleList, or one attribute for each")
        object.__setattr__(self, name, value)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` an attribute that moves with the module but is not learnt, as a table of positions is.

        Args:
            name: of the attribute.
            tensor: the buffer, or None for one that is set later.
            persistent: whether the state_dict has it; False for what the constructor can compute again.
        """
        if not isinstance(tensor, Tensor | None):
            raise TypeError(f"{type(self).__name__}.register_buffer({name!r}): expected a Tensor or None, got "
                            f"{type(tensor).__name__}")
        setattr(self, name, tensor)
        self._buffers = {**self._buffers, name: persistent}

    def _own_parameters(self) -> list[tuple[str, Parameter]]:
        return [(name, value) for name, value in vars(self).items()
                if isinstance(value, Parameter) and name not in self._buffers]

    def _own_buffers(self) -> list[tuple[str, Tensor]]:
        return [(name, vars(self)[name]) for name in self._buffers if vars(self)[name] is not None]

    def _own_state(self) -> list[tuple[str, Any]]:
        return [*self._own_parameters(), *[item for item in self._own_buffers() if self._buffers[item[0]]]]

    # ------------------------------------------------------------------ walking over the tree

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, in the order of their assignment."""
        return ((name, value) for name, value in vars(self).items() if isinstance(value, Module))

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (value for value in vars(self).values() if isinstance(value, Module))

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This module (named "") and all below it, parents first, with dotted names.

        A module used in two places comes once, by its first name, unless `remove_duplicate` is False.
        """
        stack, seen = [("", self)], set[int]()
        while stack:
            path, module = stack.pop()
            if id(module) not in seen:
                if remove_duplicate:
                    seen.add(id(module))
                yield path, module
                stack += [(_dotted(path, name), child) for name, child in module.named_children()][::-1]

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters with dotted names; a shared one comes once, unless `remove_duplicate` is False."""
        return self._named(Module._own_parameters, remove_duplicate)

    def parameters(self) -> Iterator[Parameter]:
        """The parameters, each once: what an optimizer is given."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers with dotted names; a shared one comes once, unless `remove_duplicate` is False."""
        return self._named(Module._own_buffers, remove_duplicate)

    def buffers(self) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (buffer for _, buffer in self.named_buffers())

    def _named(self, own: Callable[[Module], list[tuple[str, Any]]],
               remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules(remove_duplicate):
            for name, value in own(module):
                if id(value) not in seen:
                    if remove_duplicate:
                        seen.add(id(value))
                    yield _dotted(path, name), value

    def num_parameters(self) -> int:
        """How many numbers there are to learn; a shared parameter counts once."""
        return sum(parameter.size for parameter in self.parameters())

    # ------------------------------------------------------------------ mode, gradients, device

    @property
    def training(self) -> bool:
        """True in training, as at first; False in evaluation, and within `evaluating`. Set it by `train` and `eval`."""
        return vars(self).get("training", True) and not evaluation.get()

    @training.setter
    def training(self, mode: bool) -> None:
        vars(self)["training"] = mode

    def train(self, mode: bool = True) -> Self:
        """Put the whole tree in training mode: dropout drops. Returns self."""
        if not isinstance(mode, bool):
            raise TypeError(f"{type(self).__name__}.train: mode must be a bool, got {type(mode).__name__}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Put the whole tree in evaluation mode: dropout passes its input on. Returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze every parameter (False), or let them all learn again. Returns self."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self) -> None:
        """Set the gradient of every parameter to None."""
        for parameter in self.parameters():
            parameter.grad = None

    def to(self, device: str | None = None, dtype: Any = None) -> Self:
        """Move all parameters, their gradients and the buffers to a device, or a floating dtype, or both.

        The Parameter objects stay the same, so an optimizer that was built before goes on with them. Buffers
        of integers and booleans keep their dtype. Returns self.

        Raises:
            TypeError: `dtype` is not floating.
            ValueError, DeviceError: the device is unknown, or cannot be used.
        """
        target = None if device is None else parse_device(device)
        kind = None if dtype is None else numeric_dtype(dtype, f"{type(self).__name__}.to")
        if kind is not None and kind.kind != "f":
            raise TypeError(f"{type(self).__name__}.to: dtype must be floating, got {kind}")

        for tensor in [*self.parameters(), *self.buffers()]:
            for one in [tensor] if tensor.grad is None else [tensor, tensor.grad]:
                array = asarray_on(target or one.device, one.data, kind if one.dtype.kind == "f" else None)
                if array is not one.data:
                    one.data = array
        return self

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Tensor]:
        """The parameters and persistent buffers by dotted name, detached.

        They share memory with the module, so training goes on changing them; copy them to keep a snapshot. A
        tied parameter appears under each of its names.
        """
        return {name: tensor.detach() for name, tensor in self._named(Module._own_state, False)}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Keys:
        """Copy tensors or arrays, by name and from any device, into the parameters and buffers, in place.

        Args:
            state_dict: as `state_dict` returns it.
            strict: whether a missing or unexpected name is an error; else they are only returned.

        Returns:
            The missing and the unexpected names.

        Raises:
            TypeError: a value that is neither a tensor nor an array.
            ValueError: missing or unexpected names (if `strict`), another shape or dtype, or different values
                for the names of one tied parameter. All problems are listed, and nothing was changed.
        """
        own = dict(self._named(Module._own_state, False))
        keys, arrays = match_state(own, state_dict, strict, f"{type(self).__name__}.load_state_dict")
        for name, array in arrays.items():
            own[name].copy_(array)
        return keys

    # ------------------------------------------------------------------ hooks

    def register_forward_pre_hook(self, hook: Callable[[Self, tuple[Any, ...]], Any]) -> RemovableHandle:
        """Call ``hook(module, args)`` before every forward; it may return other positional arguments."""
        return RemovableHandle(self._own_hooks().before, hook)

    def register_forward_hook(self, hook: Callable[[Self, tuple[Any, ...], Any], Any]) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after every forward; it may return another output."""
        return RemovableHandle(self._own_hooks().after, hook)

    def register_full_backward_hook(self, hook: Callable[[Self, tuple[Any, ...], tuple[Any, ...]], Any]
                                    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` in every backward, once both are known.

        `grad_input` has an entry for each positional argument, `grad_output` for each output (None for what needs no
        gradient); it may return others for `grad_input`. Where no argument requires a gradient, `grad_input` is
        ``(None,)``. The output must be a tensor, or a tuple or list of them. Several arguments (or outputs) that
        require gradients are copied once, so that all their gradients arrive together.
        """
        return RemovableHandle(self._own_hooks().backward, hook)

    def _own_hooks(self) -> ModuleHooks:
        if self._hooks is None:
            self._hooks = ModuleHooks()
        return self._hooks

    # ------------------------------------------------------------------ text

    def extra_repr(self) -> str:
        """What stands between the parentheses of this module's line in the repr."""
        return ""

    def __repr__(self) -> str:
        return _describe(self)


def _dotted(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _describe(module: Module, note: str = "parameters") -> str:
    """The repr: one line for a leaf, else an indented block with the options and a line for each child.

    Equal numbered neighbours share a line, ``(0-5): 6 x …``.
    """
    count = module.num_parameters()
    comment = f"  # {count:,} {note}" if count else ""
    name, extra = type(module).__name__, module.extra_repr()
    parts = []
    # Children that are not numbered never share a line: their names say something.
    runs = groupby(
        module.named_children(),
        key=lambda pair: (pair[0] if not pair[0].isdigit() else "", _describe(pair[1])),
    )
    for (_, text), run in runs:
        children = list(run)
        first, last = children[0], children[-1]
        if len(children) == 1:
            label = f"({first[0]}): {text}"
        else:
            label = f"({first[0]}-{last[0]}): {len(children)} x {_describe(first[1], 'parameters each')}"
        parts.append("  " + label.replace("\n", "\n  "))
    if not parts:
        return f"{name}({extra}){comment}"
    return "\n".join([f"{name}({comment}", *([f"  {extra}"] if extra else []), *parts, ")"])
