"""Where compiled kernels are kept on disk: in a folder whose name is a hash of all that they are compiled from.

Numba finds a kernel made anew when the kernel's own file has changed. But helpers in other files are compiled into it,
too; so a change of any of the files leads to another folder, where nothing is yet.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba

HERE = Path(__file__).parent
PREFIX = "minigrad-kernels-"


def _hash_of_sources() -> str:
    """Of the names and contents of the files that kernels and their helpers are in."""
    digest = hashlib.sha256()
    for path in sorted(HERE.glob("*.py")):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


NAME = PREFIX + _hash_of_sources()  # now, as the files are imported: a process that runs on knows no later change


@contextmanager
def cache_folder() -> Iterator[Path | None]:
    """Within the block, what Numba compiles is kept in the folder that is given, or None if none can be written to.

    Numba's setting is the whole process's, so one thread at a time may be in the block.
    """
    settings: Any = numba.config
    before = settings.CACHE_DIR
    folder = _writable_folder(before)
    if folder is not None:
        settings.CACHE_DIR = str(folder)
    try:
        yield folder
    finally:
        settings.CACHE_DIR = before


@cache
def _writable_folder(wanted: str) -> Path | None:
    """The first that can be written to: in `wanted` (NUMBA_CACHE_DIR) if it is set, beside the sources, the user's."""
    beside = HERE / "__pycache__"
    for parent in [*([Path(wanted)] if wanted else []), beside, *_user_folder()]:
        folder = parent / NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        if parent == beside:  # elsewhere the other folders may be those of other installations
            for old in parent.glob(f"{PREFIX}*"):
                if old.name != NAME:
                    shutil.rmtree(old, ignore_errors=True)
        return folder
    return None


def _user_folder() -> list[Path]:
    """Where the system wants what programs can make again; none for a user without a home."""
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    try:
        return [Path(named) if named else Path.home() / ".cache"]
    except RuntimeError:
        return []
