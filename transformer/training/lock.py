"""One training at a time writes to a folder: a lock on the folder itself, which leaves no file.

The lock belongs to an open descriptor of the folder (``flock``). It excludes other processes and other threads of this
one, and it ends with the process, however that ends. What only reads a run takes no lock and never waits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from transformer.training.messages import note
from transformer.training.run_folder import RunError, check_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def only_writer(folder: Path, new: bool) -> Iterator[None]:
    """Within the block, no other training writes to `folder`.

    Where a file system or a platform has no locks, a note on standard error says so, and the block is entered.

    Args:
        folder: the folder of the run.
        new: make the folder and those above it, where they are missing. Those that are empty at the end of the block
            are removed again.

    Raises:
        RunError: another training writes to the folder, or there is none.
    """
    made = [path for path in (folder, *folder.parents) if new and not path.exists()]
    if new:
        with suppress(FileExistsError):
            folder.mkdir(parents=True, exist_ok=True)
    check_folder(folder)
    with _locked(folder, exclusive=True) as lock:
        if not lock:
            note(f"{folder}: there are no locks here; start no second training in this folder")
        try:
            yield
        finally:
            for path in made:
                with suppress(OSError):  # it has files
                    path.rmdir()


def check_free(folder: Path) -> None:
    """RunError if a training writes to `folder` now."""
    if folder.is_dir():
        with _locked(folder, exclusive=False):
            pass


@contextmanager
def _locked(folder: Path, exclusive: bool) -> Iterator[bool]:
    """Lock a folder for the block, which gets whether that is possible; RunError if a training has locked it."""
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            # A training that failed may just have removed the folder that it had made.
            free, possible = os.path.samestat(os.stat(folder), os.fstat(descriptor)), True
        except (BlockingIOError, FileNotFoundError):
            free, possible = False, True
        except OSError:  # network file systems raise various errors
            free, possible = True, False
        if not free:
            raise RunError(f"{folder}: another training writes to it; wait for its end, or choose another folder")
        yield possible
    finally:
        os.close(descriptor)
