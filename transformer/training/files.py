"""Small files: read up to a bound, and written whole or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path


def read_file(path: Path, most: int) -> bytes:
    """The bytes of a file; OSError unless it is a regular file of at most `most` bytes.

    A pipe, on which reading would wait, and a device, of which there is no end, are not opened.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"{path}: not a file")
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(f"{path}: it has more than {most:,} bytes")
        return file.read(most)


def write_synced(path: Path, data: bytes) -> None:
    """Write a file, and force it to the disk. An OSError names the file."""
    try:
        with open(path, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in one atomic step: at every moment, it is complete, or as it was. An OSError leaves nothing."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write_synced(temporary, data)
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_output(path: Path, data: bytes) -> None:
    """Write to a path of the user's choice: whole if it is a file, also behind a link; a device or a pipe as it is."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        replace_file(path.resolve(), data)


def sync_folder(path: Path) -> None:
    """Force the names in a folder to the disk."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
