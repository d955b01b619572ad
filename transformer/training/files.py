"""Small files: read up to a bound, and written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from minigrad.checkpoint import force_to_disk


def read_file(path: Path, most: int) -> bytes:
    """The bytes of a file; OSError unless it is a regular file of at most `most` bytes.

    A pipe, on which reading would wait, and a device, of which there is no end, are not opened.
    """
    if not path.is_file():
        raise OSError(f"{path}: there is no such file")
    if path.stat().st_size > most:
        raise OSError(f"{path}: it has more than {most:,} bytes")
    return path.read_bytes()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An OSError inside the block names `path`: of a full disk, the system names no file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def write_synced(path: Path, data: bytes) -> None:
    """Write a file, and force it to the disk."""
    path.write_bytes(data)
    force_to_disk(path, os.O_RDWR)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in one atomic step: at every moment, it is complete, or as it was. An OSError names it."""
    temporary = path.with_name(f".{path.name}.tmp")
    with naming(path):
        try:
            write_synced(temporary, data)
            if path.exists():
                shutil.copymode(path, temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_output(path: Path, data: bytes) -> None:
    """Write to a path of the user's choice: whole if it is a file, also behind a link; a device or a pipe as it is."""
    if path.exists() and not path.is_file():
        with naming(path):
            path.write_bytes(data)
    else:
        replace_file(path.resolve(), data)


def sync_folder(path: Path) -> None:
    """Force the names in a folder to the disk."""
    if os.name == "posix":
        with naming(path):
            force_to_disk(path, os.O_RDONLY)
