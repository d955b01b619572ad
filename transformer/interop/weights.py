"""Loading and saving by PyTorch's names. Loading checks all tensors before it changes one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import minigrad
from minigrad import Tensor, nn
from minigrad.checkpoint import CheckpointError, load_tensors, save_tensors
from minigrad.device import is_array, on_device_of
from minigrad.nn.state import Keys, same_values

from transformer.interop.names import pytorch_names


def load_pytorch(module: nn.Module, source: str | os.PathLike[str] | Mapping[str, Any], prefix: str = "",
                 rename: Callable[[str], str | None] | None = None, strict: bool = True) -> Keys:
    """Copy the weights of a PyTorch model into `module`.

    Args:
        module: any module, as in `pytorch_names`.
        source: a safetensors file, or a state by name: arrays, minigrad's tensors, or PyTorch's.
        prefix: the path of the module in PyTorch's model, such as "transformer.encoder"; what is outside is ignored.
        rename: takes a name there, below `prefix`, to one of `pytorch_names` or of ``module.state_dict()``, or to None
            if it has no counterpart here and needs none, such as a sinusoid's table.
        strict: whether a missing or unexpected name is an error; else the names are only returned.

    Values of a lower precision are widened to the dtype of the module: float16 and bfloat16 to float32, say.

    A ``state_dict`` does not hold the number of heads, ``norm_first``, the activation and the epsilon of the norms:
    `module` must have the same ones. A tensor that is tied here may have one of its names or all of them; the file's
    metadata has the names that ``safetensors.torch.save_model`` left out.

    Returns:
        The missing names, as they are here, and the unexpected ones.

    Raises:
        TypeError: no module; a source that is neither file nor state; a value that is no array.
        ValueError: names are missing or unexpected (if `strict`), shapes differ, a dtype would be narrowed, or values
            differ that are tied here. Nothing was changed.
        FileNotFoundError, minigrad.checkpoint.CheckpointError: there is no such file, or it cannot be read.
    """
    names, own = pytorch_names(module), module.state_dict()
    start = f"{prefix.rstrip('.')}." if prefix else ""
    rename = rename or str  # each name as it is
    state: dict[str, Any] = {}
    for theirs, array in _state(source).items():
        here = rename(theirs.removeprefix(start)) if theirs.startswith(start) else None
        if here is None:
            continue
        ours = names.get(here, [here])
        for name, part in zip(ours, _parts(here, array, ours, own), strict=True):
            if name in state and not same_values(state[name], part):
                raise ValueError(f"load_pytorch: nothing was changed, because {theirs} differs from another tensor "
                                 f"that is {name}, too")
            state[name] = part
    around = own.keys() - {name for ours in names.values() for name in ours}
    state = {name: own[name].data for name in around} | state
    values = {id(own[name].data): value for name, value in state.items() if name in own}
    state = {name: values[id(tensor.data)] for name, tensor in own.items() if id(tensor.data) in values} | state
    return module.load_state_dict({name: _widened(value, own.get(name)) for name, value in state.items()}, strict)


def to_pytorch(module: nn.Module, prefix: str = "", gradients: bool = False) -> dict[str, Tensor]:
    """The weights of `module` by PyTorch's names, or their gradients: detached copies, on the module's device.

    Args:
        module: any module, as in `pytorch_names`. A tied parameter appears under each of its names, as in a
            ``state_dict`` of PyTorch.
        prefix: the path of the module in PyTorch's model.
        gradients: whether to return ``.grad`` of the parameters, as ``{name: p.grad}`` for ``named_parameters()`` of
            PyTorch's module. A tensor without a gradient is left out; where it holds several parameters, one without is
            zero.
    """
    names, weights = pytorch_names(module), module.state_dict()
    own: Mapping[str, Tensor] = weights
    if gradients:
        own = {name: p.grad for name, p in module.named_parameters(remove_duplicate=False) if p.grad is not None}
    start = f"{prefix.rstrip('.')}." if prefix else ""
    state: dict[str, Tensor] = {}
    for theirs, ours in names.items():
        if not own.keys().isdisjoint(ours):
            parts = [own[name] if name in own else minigrad.zeros_like(weights[name]) for name in ours]
            state[start + theirs] = (minigrad.concatenate(parts) if len(parts) > 1 else parts[0].clone()).detach()
    return state


def save_pytorch(path: str | os.PathLike[str], module: nn.Module, prefix: str = "") -> None:
    """Write `to_pytorch` to a safetensors file, for ``load_state_dict(safetensors.torch.load_file(path))``.

    Raises:
        TypeError: no module.
        OSError: the file cannot be written.
    """
    save_tensors(path, to_pytorch(module, prefix), {"format": "pt"})


def _state(source: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """The state as raw arrays by name."""
    if isinstance(source, Mapping):
        return {name: _array(name, value) for name, value in source.items()}
    try:
        arrays, metadata = load_tensors(source)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; if torch.save wrote it, give torch.load(path, weights_only=True)") from error
    # `save_model` notes names that share one tensor.
    return {left_out: arrays[kept] for left_out, kept in metadata.items() if kept in arrays} | arrays


def _array(name: str, value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.data
    if is_array(value):
        return value
    if not hasattr(value, "__array__"):
        raise TypeError(f"load_pytorch: {name} must be an array or a tensor, got {type(value).__name__}")
    if hasattr(value, "detach"):  # a tensor of PyTorch, which may be on a GPU
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    return np.asarray(value)


def _parts(name: str, array: Any, ours: list[str], own: Mapping[str, Tensor]) -> Any:
    """The values of the parameters `ours` in the array `name` of PyTorch: several of one shape are stacked in it."""
    if len(ours) == 1:
        return [array]
    rows, *columns = own[ours[0]].shape
    needed = (len(ours) * rows, *columns)
    if tuple(array.shape) != needed:
        raise ValueError(f"load_pytorch: nothing was changed, because of {name}: shape {tuple(array.shape)} given, "
                         f"{needed} needed")
    return array.reshape(len(ours), rows, *columns)


def _widened(value: Any, own: Tensor | None) -> Any:
    """Floats in the dtype of the tensor `own` here, if that has room for all of their digits."""
    if own is None or value.dtype.kind != "f" or not np.can_cast(value.dtype, own.dtype, "safe"):
        return value
    with on_device_of(value):
        return value.astype(own.dtype)
