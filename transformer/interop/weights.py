"""Loading and saving by PyTorch's names. Loading checks all tensors before it changes one."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

import minigrad
from minigrad import Tensor, nn
from minigrad.checkpoint import load_tensors, save_tensors
from minigrad.device import is_array
from minigrad.nn.state import same_values

from transformer.interop.names import ModelNames, Pair, pytorch_names


def load_pytorch(module: nn.Module, source: str | os.PathLike[str] | Mapping[str, Any], prefix: str = "",
                 names: ModelNames | None = None, ignore: Collection[str] = ()) -> None:
    """Copy the weights of a PyTorch model into `module`.

    Args:
        module, prefix, names: as in `pytorch_names`. Entries of the state outside of `prefix` are ignored.
        source: a safetensors file, or a state by name: arrays, minigrad's tensors, or PyTorch's on the CPU.
        ignore: names under `prefix` that have no counterpart here and need none: a sinusoid's table, say.

    A ``state_dict`` does not hold the number of heads, ``norm_first``, the activation and the epsilon of the norms:
    `module` must have the same ones. A tensor that is tied here may have one of its names or all of them; the file's
    metadata has the names that ``safetensors.torch.save_model`` left out.

    Raises:
        TypeError: as `pytorch_names`; a source that is neither file nor state; a value that is no array.
        ValueError: names are missing or unexpected, shapes or dtypes differ, or values differ that are tied here. All
            problems are listed, by PyTorch's names, and nothing was changed.
        FileNotFoundError, minigrad.checkpoint.CheckpointError: there is no such file, or it cannot be read.
    """
    if not isinstance(module, nn.Module):
        raise TypeError("load_pytorch: the module comes first and what is loaded into it second, load_pytorch(module, "
                        f"source); the first is no module of minigrad, it is a {type(module).__name__}")
    pairs = pytorch_names(module, prefix, names)
    state, origin = _state(source)
    path = f"{prefix.rstrip('.')}." if prefix else ""
    under = {name: value for name, value in state.items() if name.startswith(path) and name not in ignore}
    loaded, misfits = _unstack(pairs, under, module.state_dict())
    problems = _differences(pairs, under) + misfits
    if problems:
        raise ValueError(f"load_pytorch: nothing was changed, because {origin} does not fit the "
                         f"{type(module).__name__}:\n  " + "\n  ".join(problems))
    module.load_state_dict(loaded, strict=False)


def to_pytorch(module: nn.Module, prefix: str = "", names: ModelNames | None = None) -> dict[str, Tensor]:
    """The weights of `module` by PyTorch's names: detached copies, on the module's device.

    Args:
        module, prefix, names: as in `pytorch_names`. A tied parameter appears under each of its names, as in a
            ``state_dict`` of PyTorch.

    Raises:
        TypeError: as `pytorch_names`.
        ValueError: two parameters that differ would have one name.
    """
    own = module.state_dict()
    state: dict[str, Tensor] = {}
    for theirs, ours in pytorch_names(module, prefix, names):
        value = minigrad.concatenate([own[name] for name in ours])
        if theirs in state and not same_values(state[theirs].data, value.data):
            raise ValueError(f"to_pytorch: two parameters that differ would both be called {theirs}; name them apart")
        state[theirs] = value
    return state


def save_pytorch(path: str | os.PathLike[str], module: nn.Module, prefix: str = "",
                 names: ModelNames | None = None) -> None:
    """Write `to_pytorch` to a safetensors file, for ``load_state_dict(safetensors.torch.load_file(path))``.

    Args:
        path: the file, whose directory exists.
        module, prefix, names: as for `to_pytorch`.

    Raises:
        TypeError, ValueError: as `to_pytorch`.
        OSError: the file cannot be written.
    """
    save_tensors(path, to_pytorch(module, prefix, names), {"format": "pt"})


def _state(source: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The state as raw arrays by name, and its name in messages."""
    if isinstance(source, Mapping):
        return {name: _array(name, value) for name, value in source.items()}, "the state"
    if not isinstance(source, str | os.PathLike):
        raise TypeError("load_pytorch: the source must be the path of a safetensors file or a state_dict, got a "
                        f"{type(source).__name__}")
    arrays, metadata = load_tensors(source)
    for left_out, kept in metadata.items():  # `save_model` notes names that share one tensor
        if left_out not in arrays and kept in arrays:
            arrays[left_out] = arrays[kept]
    return arrays, os.fspath(source)


def _array(name: str, value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.data
    if is_array(value):
        return value
    if not hasattr(value, "__array__"):  # PyTorch's tensors on the CPU have it
        raise TypeError(f"load_pytorch: {name} must be an array or a tensor, got {type(value).__name__}")
    return np.asarray(value)


def _differences(pairs: list[Pair], state: Mapping[str, Any]) -> list[str]:
    """The problems with names: parameters here that no entry of `state` gives, and entries that are in no pair."""
    found = {name for theirs, ours in pairs if theirs in state for name in ours}
    missing = [theirs for theirs, ours in pairs if theirs not in state and not found.issuperset(ours)]
    known = {pair.theirs for pair in pairs}
    unexpected = [name for name in state if name not in known]
    problems = [f"{problem}: {', '.join(names)}"
                for problem, names in (("missing", missing), ("unexpected", unexpected)) if names]
    if any(name.endswith(("bias_k", "bias_v")) for name in unexpected):
        problems.append("bias_k and bias_v: attention with add_bias_kv=True has no counterpart here")
    return problems


def _unstack(
    pairs: list[Pair], state: Mapping[str, Any], own: Mapping[str, Tensor]
) -> tuple[dict[str, Any], list[str]]:
    """The arrays by their names here, each a block of rows of a tensor of PyTorch, and the problems with values."""
    loaded: dict[str, Any] = {}
    source: dict[str, str] = {}  # ours -> theirs
    problems = []
    for theirs, ours in pairs:
        if theirs not in state:
            continue
        array, parts = state[theirs], [own[name] for name in ours]
        needed = (sum(len(part) for part in parts), *parts[0].shape[1:])
        if tuple(array.shape) != needed:
            problems.append(f"{theirs}: shape {tuple(array.shape)} given, {needed} needed")
            continue
        if array.dtype != parts[0].dtype:
            problems.append(f"{theirs}: dtype {array.dtype} given, {parts[0].dtype} needed; cast the values, or the "
                            "module with .to(dtype=...)")
            continue
        start = 0
        for name, part in zip(ours, parts, strict=True):
            rows = array[start:start + len(part)]
            start += len(part)
            if name in loaded and not same_values(loaded[name], rows):
                problems.append(f"{theirs}: differs from {source[name]}, with which it is tied here")
            loaded[name], source[name] = rows, theirs
    return loaded, problems
