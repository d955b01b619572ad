"""Loading and saving by PyTorch's names. Loading checks all tensors before it changes one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import minigrad
from minigrad import Tensor, nn
from minigrad.checkpoint import CheckpointError, load_tensors, save_tensors
from minigrad.device import is_array, on_device_of
from minigrad.nn.state import Keys, same_values

from transformer.interop.names import ModelNames, entries
from transformer.interop.rename import Entry, Rename, is_ignored


def load_pytorch(module: nn.Module, source: str | os.PathLike[str] | Mapping[str, Any], prefix: str = "",
                 names: ModelNames | None = None, rename: Rename | None = None, strict: bool = True) -> Keys:
    """Copy the weights of a PyTorch model into `module`.

    Args:
        module, prefix, names: as in `pytorch_names`. Entries of the state outside of `prefix` are ignored.
        source: a safetensors file, or a state by name: arrays, minigrad's tensors, or PyTorch's.
        rename: from their names, below `prefix`, to the names here: a dictionary as in `pytorch_names`, with None for
            what has no counterpart here and needs none, such as a sinusoid's table; or a function of a name, which may
            return None. `to_pytorch` takes the dictionary.
        strict: whether a missing or unexpected name is an error; else the names are only returned.

    Values of a lower precision are widened to the dtype of the module: float16 and bfloat16 to float32, say.

    A ``state_dict`` does not hold the number of heads, ``norm_first``, the activation and the epsilon of the norms:
    `module` must have the same ones. A tensor that is tied here may have one of its names or all of them; the file's
    metadata has the names that ``safetensors.torch.save_model`` left out.

    Returns:
        The missing and the unexpected names, PyTorch's.

    Raises:
        TypeError: as `pytorch_names`; a source that is neither file nor state; a value that is no array.
        ValueError: names are missing or unexpected (if `strict`), shapes differ, a dtype would be narrowed, or values
            differ that are tied here. All problems are listed, by PyTorch's names, and nothing was changed.
        FileNotFoundError, minigrad.checkpoint.CheckpointError: there is no such file, or it cannot be read.
    """
    state, origin = _state(source)
    path = f"{prefix.rstrip('.')}." if prefix else ""
    under = {name: value for name, value in state.items() if name.startswith(path)}
    wanted = entries(module, prefix, names, rename, [name.removeprefix(path) for name in under])
    loaded, misfits = _parts(wanted, under, module.state_dict())
    known = {theirs for theirs, _ in wanted}
    found = {name for theirs, fused in wanted if theirs in under for name in fused.names}
    keys = Keys([theirs for theirs, fused in wanted if theirs not in under and not found.issuperset(fused.names)],
                [name for name in under if name not in known and not is_ignored(name.removeprefix(path), rename)])
    problems = [*(_differences(keys) if strict else ()), *misfits]
    if problems:
        raise ValueError(f"load_pytorch: nothing was changed, because {origin} does not fit the "
                         f"{type(module).__name__}:\n  " + "\n  ".join(problems))
    module.load_state_dict(loaded, strict=False)
    return keys


def to_pytorch(module: nn.Module, prefix: str = "", names: ModelNames | None = None, rename: Rename | None = None,
               gradients: bool = False) -> dict[str, Tensor]:
    """The weights of `module` by PyTorch's names, or their gradients: detached copies, on the module's device.

    Args:
        module, prefix, names, rename: as in `pytorch_names`. A tied parameter appears under each of its names, as in a
            ``state_dict`` of PyTorch.
        gradients: whether to return ``.grad`` of the parameters, as ``{name: p.grad}`` for ``named_parameters()`` of
            PyTorch's module. A tensor without a gradient is left out; where it holds several parameters, one without is
            zero.

    Raises:
        TypeError, ValueError: as `pytorch_names`.
        ValueError: two parameters that differ would have one name.
    """
    wanted = entries(module, prefix, names, rename)
    weights = module.state_dict()
    own: Mapping[str, Tensor | None] = _gradients(module) if gradients else weights
    state: dict[str, Tensor] = {}
    for theirs, fused in wanted:
        if all(own.get(name) is None for name in fused.names):
            continue
        value = fused.join([minigrad.zeros_like(weights[name]) if (part := own.get(name)) is None else part
                            for name in fused.names])
        if theirs in state and not same_values(state[theirs].data, value.data):
            raise ValueError(f"to_pytorch: two parameters that differ would both be called {theirs}; name them apart")
        state[theirs] = value
    return state


def save_pytorch(path: str | os.PathLike[str], module: nn.Module, prefix: str = "",
                 names: ModelNames | None = None, rename: Rename | None = None) -> None:
    """Write `to_pytorch` to a safetensors file, for ``load_state_dict(safetensors.torch.load_file(path))``.

    Args:
        path: the file, whose directory exists.
        module, prefix, names, rename: as for `to_pytorch`.

    Raises:
        TypeError, ValueError: as `to_pytorch`.
        OSError: the file cannot be written.
    """
    save_tensors(path, to_pytorch(module, prefix, names, rename), {"format": "pt"})


def _gradients(module: nn.Module) -> dict[str, Tensor | None]:
    return {name: None if p.grad is None else p.grad.detach() for name, p in module.named_parameters()}


def _state(source: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The state as raw arrays by name, and its name in messages."""
    if isinstance(source, Mapping):
        return {name: _array(name, value) for name, value in source.items()}, "the state"
    if not isinstance(source, str | os.PathLike):
        raise TypeError("load_pytorch: the source must be the path of a safetensors file or a state_dict, got a "
                        f"{type(source).__name__}")
    try:
        arrays, metadata = load_tensors(source)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; if torch.save wrote it, give torch.load(path, weights_only=True)") from error
    for left_out, kept in metadata.items():  # `save_model` notes names that share one tensor
        if left_out not in arrays and kept in arrays:
            arrays[left_out] = arrays[kept]
    return arrays, os.fspath(source)


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


def _differences(keys: Keys) -> list[str]:
    """The problems with names."""
    problems = [f"{problem}: {', '.join(found)}"
                for problem, found in (("missing", keys.missing_keys), ("unexpected", keys.unexpected_keys)) if found]
    if any(name.endswith(("bias_k", "bias_v")) for name in keys.unexpected_keys):
        problems.append("bias_k and bias_v: attention with add_bias_kv=True has no counterpart here")
    return problems


def _parts(wanted: list[Entry], state: Mapping[str, Any], own: Mapping[str, Tensor]
           ) -> tuple[dict[str, Any], list[str]]:
    """The arrays by their names here, each a part of a tensor of PyTorch, and the problems with values."""
    loaded: dict[str, Any] = {}
    source: dict[str, str] = {}  # ours -> theirs
    problems = []
    for theirs, fused in wanted:
        if theirs not in state:
            continue
        array, parts = state[theirs], [own[name] for name in fused.names]
        needed, dtype = fused.shape([part.shape for part in parts]), parts[0].dtype
        if tuple(array.shape) != needed:
            problems.append(f"{theirs}: shape {tuple(array.shape)} given, {needed} needed")
            continue
        if array.dtype != dtype and not _is_narrower(array.dtype, dtype):
            problems.append(f"{theirs}: dtype {array.dtype} given, {dtype} needed; cast the values, or the "
                            "module with .to(dtype=...)")
            continue
        for name, part in zip(fused.names, fused.split(array, [part.shape for part in parts]), strict=True):
            with on_device_of(part):
                widened = part.astype(dtype, copy=False)
            if name in loaded and not same_values(loaded[name], widened):
                problems.append(f"{theirs}: differs from {source[name]}, with which it is tied here")
            loaded[name], source[name] = widened, theirs
    return loaded, problems


def _is_narrower(given: Any, needed: Any) -> bool:
    """Whether floats of the dtype `given` are widened to `needed`."""
    return bool(given.kind not in "biu" and needed.kind == "f" and np.can_cast(given, needed, "safe"))
