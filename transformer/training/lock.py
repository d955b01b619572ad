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
from transformer.training.run_folder import RunError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_held = set[int]()  # the locked descriptors of this process


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
    descriptor = _lock_folder(folder, new)
    try:
        yield
    finally:
        for path in made:
            with suppress(OSError):  # it has files
                path.rmdir()
        _release(descriptor)


def check_free(folder: Path) -> None:
    """RunError if a training writes to `folder` now."""
    with suppress(FileNotFoundError, NotADirectoryError):
        if fcntl is not None:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                _lock(descriptor, folder, shared=True)
            finally:
                os.close(descriptor)


def _lock_folder(folder: Path, new: bool) -> int | None:
    """The locked descriptor of the folder, which is made if it is `new` and missing; None where there are none."""
    if new:
        with suppress(FileExistsError):
            folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        _note(folder, "this platform")
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except NotADirectoryError as error:
        raise RunError(f"{folder}: is a file; a run needs a folder of its own, choose another name") from error
    except FileNotFoundError as error:
        raise RunError(f"{folder}: no such folder") from error
    _held.add(descriptor)
    try:
        if not _lock(descriptor, folder):
            _note(folder, "its file system")
        elif not _is_at(folder, descriptor):  # a training that failed has just removed the folder that it had made
            raise _busy(folder)
    except BaseException:
        _release(descriptor)
        raise
    return descriptor


def _lock(descriptor: int, folder: Path, shared: bool = False) -> bool:
    """Lock an open folder; False where that is not possible. RunError if a training has locked it."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _busy(folder) from error
    except OSError:  # network file systems raise various errors
        return False
    return True


def _busy(folder: Path) -> RunError:
    return RunError(f"{folder}: another training writes to it; wait for its end, or choose another folder")


def _note(folder: Path, where: str) -> None:
    note(f"{folder}: {where} has no locks; start no second training in this folder")


def _is_at(folder: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(descriptor: int | None) -> None:
    if descriptor in _held:
        _held.remove(descriptor)
        with suppress(OSError):  # a child that was forked this moment may still have the descriptor
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _close_in_child() -> None:
    """A forked process shares the lock of its parent, and would keep it where the parent is killed."""
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
