"""Named arrays in a safetensors file: written so that a crash never leaves half a file, read with care.

A file holds a JSON header (names, dtypes, shapes, and text as metadata) and then the raw bytes; nothing in
it can run: https://github.com/huggingface/safetensors. The two functions import the library when they are called.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.device import to_numpy
from minigrad.engine.operands import numeric
from minigrad.tensor import Tensor

_CHECKSUM = "minigrad.checksum"  # the metadata entry under which save_tensors keeps the checksum of the tensors


class CheckpointError(ValueError):
    """A file that cannot be read as a checkpoint; the message names it and the reason."""


def save_tensors(
    path: str | os.PathLike[str], tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named arrays or tensors, from any device, to a safetensors file.

    The file is complete or absent at every moment: it is written under a temporary name in the same folder,
    forced to the disk, and then renamed over `path`.

    Args:
        path: of the file; its folder must exist.
        tensors: boolean, integer or floating arrays or tensors, of any layout and shape, 0-d included.
        metadata: text by name.

    Raises:
        TypeError: a value that is neither an array nor a tensor or of another dtype; metadata that is not
            text.
        OSError: the file cannot be written; what was at `path` is as before.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    path = Path(path)
    arrays = {name: _host_array(name, value) for name, value in tensors.items()}
    texts = {**(metadata or {}), _CHECKSUM: _checksum(arrays)}
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        save_file(arrays, temporary, texts)
        temporary.chmod(mode)  # the library may leave a file that only its owner can read
        force_to_disk(temporary, os.O_RDWR)
        os.replace(temporary, path)
    except SafetensorError as error:
        raise OSError(f"{path}: cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":
        force_to_disk(path.parent, os.O_RDONLY)  # the renaming itself


def load_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read the safetensors file at `path`, made by `save_tensors` or by another program.

    Returns:
        The arrays by name, on the host and writable, and the metadata. NumPy has no bfloat16: such a tensor becomes
        float32, which holds the same values.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: it is no safetensors file, is damaged or incomplete, or has a dtype that NumPy lacks.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path}: not a file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            dtypes = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 - not a mapping
            arrays = {name: _bfloat16(path, name) if dtype == "BF16" else np.array(file.get_tensor(name))
                      for name, dtype in dtypes.items()}
    except (SafetensorError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file: {error}") from error
    expected = metadata.pop(_CHECKSUM, None)
    if expected is not None and expected != _checksum(arrays):
        raise CheckpointError(f"{path}: damaged: the values do not match their checksum")
    return arrays, metadata


def _bfloat16(path: Path, name: str) -> np.ndarray:
    """A bfloat16 tensor as float32: its 16 bits are the upper half of a float32's."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(length))[name]
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        halves = np.frombuffer(file.read(end - begin), "<u2")
    return (halves.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])


def _host_array(name: str, value: Any) -> np.ndarray:
    array = value.data if isinstance(value, Tensor) else value
    if not hasattr(array, "dtype"):
        raise TypeError(f"save_tensors: {name} must be an array or a tensor, got {type(value).__name__}")
    host = np.asarray(to_numpy(numeric(array, f"save_tensors: {name}")), order="C")  # 0-d stays 0-d
    return host.astype(host.dtype.newbyteorder("="), copy=False)


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """CRC-32 of names, dtypes, shapes and bytes, in the order of the names: finds what a bad disk or copy changed."""
    crc = 0
    for name in sorted(arrays):
        array = arrays[name]
        crc = zlib.crc32(f"{name} {array.dtype.name} {array.shape} ".encode(), crc)
        crc = zlib.crc32(array.reshape(-1).view(np.uint8).data, crc)
    return f"{crc:08x}"


def force_to_disk(path: Path, flags: int) -> None:
    """Force a file, opened with these flags, or the names in a folder to the disk."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
