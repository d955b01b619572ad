"""The folder of a training run: the names of its checkpoints, the pointers to two of them, and its lock.

    DIR/
        log.csv                     one line for each validation
        checkpoints/00000400/       model.safetensors, run.json, and in the latest optimizer.safetensors
        latest, best                each holds the name of a checkpoint
        tokenizer.json              the tokenizer in Hugging Face's form, or source_ and target_tokenizer.json
        decoding.json               the length normalisation that suits the beam, once the run has ended

Names: ``00000400`` was made after the validation of step 400, ``00000433-interrupted`` by Ctrl-C, and
``00001200-average-5`` of the last five at the end.

The lock belongs to an open descriptor of the folder (``flock``), and leaves no file. It excludes other processes and
other threads of this one, and ends with the process, however that ends. What only reads a run takes no lock and never
waits.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from minigrad.checkpoint import force_to_disk

from transformer.training.messages import note

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

OPTIMIZER = "optimizer.safetensors"
LARGEST = 2**27  # bytes of a file beside the arrays: millions of validations, or the tokens of any vocabulary
_OURS = re.compile(r"\d{8,}(-interrupted|-average-\d+)?|\..*\.partial", re.ASCII)  # names that `prune` may remove
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}", re.ASCII | re.IGNORECASE)  # of a checkpoint, a user's own too


class RunError(ValueError):
    """A folder is not a run, or a checkpoint cannot be used; the message is one line."""


def is_run(folder: str | Path) -> bool:
    """Whether `folder` holds a run with at least one checkpoint."""
    return pointed(Path(folder), "latest") is not None


def check_run(folder: Path) -> None:
    """RunError unless `folder` holds a run with at least one checkpoint."""
    if not folder.exists():
        raise RunError(f"{folder}: no such folder")
    if not is_run(folder):
        problem = "has no checkpoint" if folder.is_dir() else "is a file"
        raise RunError(f"{folder}: {problem}: it is not the folder of a training run, which train --out writes")


def check_new(folder: Path) -> None:
    """RunError if a new run cannot be written to `folder`: it holds a run, or is a file."""
    if is_run(folder):
        raise RunError(f"{folder}: already holds a training run; go on with --resume, or choose another folder")
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is a file; choose another folder")


# --------------------------------------------------------------------------- pointers


def point(folder: Path, pointer: str, name: str | None) -> None:
    """Write the name of a checkpoint to a pointer file, "latest" or "best", in one atomic step; None removes it."""
    if name is None:
        (folder / pointer).unlink(missing_ok=True)
    else:
        replace_file(folder / pointer, f"{name}\n".encode())
    sync_folder(folder)


def pointed(folder: Path, pointer: str) -> str | None:
    """The name of the checkpoint that a pointer file names; "" if the file is damaged; None without one.

    A run that was killed before it wrote "latest" has its `newest` checkpoint as the latest.
    """
    if not os.path.lexists(folder / pointer):
        return newest(folder) if pointer == "latest" else None
    with suppress(OSError):
        name = read_file(folder / pointer).decode("ascii", "replace").strip()
        return name if _NAME.fullmatch(name) else ""
    return ""


def resolve(folder: Path, which: str) -> str:
    """The name of a checkpoint of a run: `which` is "best", "latest" or a name.

    Raises:
        RunError: there is no such run; the pointer is damaged, or the text no name. Whether there is a checkpoint of
            that name is not checked.
    """
    check_run(folder)
    name: Any = which
    if which in ("best", "latest"):
        name = pointed(folder, which)
        if name is None:
            return resolve(folder, "latest")
    if not _NAME.fullmatch(name):
        raise RunError(f"{folder / which[:100]}: damaged, or not the name of a checkpoint")
    return name


# --------------------------------------------------------------------------- checkpoints


def numbered(folder: Path) -> list[str]:
    """The names of the checkpoints that are named by their step alone, oldest first."""
    return [name for name in reversed(checkpoint_names(folder)) if name.isdecimal()]


def newest(folder: Path) -> str | None:
    """The newest checkpoint that a run wrote to go on from, after a validation or a signal; None without one."""
    return next((name for name in checkpoint_names(folder) if name.removesuffix("-interrupted").isdecimal()), None)


def checkpoint_names(folder: Path) -> list[str]:
    """The names of all checkpoints, newest first."""
    found = (folder / "checkpoints").glob("*")
    return sorted((path.name for path in found if _NAME.fullmatch(path.name) and path.is_dir()), reverse=True)


def prune(folder: Path, latest: str, best: str | None, keep: int) -> None:
    """Keep the newest `keep` numbered checkpoints, the latest and the best; remove the others.

    Of those that are not the latest, the optimizer's state goes, too: it is twice as large as the weights.

    It also removes leftovers of killed runs, among them checkpoints newer than the latest, which the run writes again.
    """
    newest = [name for name in numbered(folder) if name <= latest][-keep:]
    kept = {*newest, latest, best}
    for path in (folder / "checkpoints").iterdir():
        if path.name not in kept and _OURS.fullmatch(path.name):
            remove(path)
        elif path.name in kept - {latest}:
            (path / OPTIMIZER).unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Rename a checkpoint, then remove it, so that a killed run leaves no incomplete checkpoint under that name."""
    if path.suffix != ".partial":
        hidden = path.with_name(f".{path.name}.removed.partial")
        shutil.rmtree(hidden, ignore_errors=True)
        path = path.rename(hidden)
    shutil.rmtree(path, ignore_errors=True)


# --------------------------------------------------------------------------- one writer


@contextmanager
def only_writer(folder: Path, new: bool) -> Iterator[None]:
    """Within the block, no other training writes to `folder`.

    Where a file system or a platform has no locks, a note on standard error says so, and the block is entered.

    Args:
        folder: the folder of a run.
        new: the run is a new one, for which the folder and those above it are made, where they are missing. Those that
            are empty at the end of the block are removed again.

    Raises:
        RunError: another training writes to the folder; `check_new` or `check_run` refuses it.
    """
    made = [path for path in (folder, *folder.parents) if new and not path.exists()]
    if new:
        with suppress(FileExistsError):  # a file, which `check_new` refuses
            folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder) as lock:
        try:
            (check_new if new else check_run)(folder)
            if not lock:
                note(f"{folder}: there are no locks here; start no second training in this folder")
            yield
        finally:
            for path in made:
                with suppress(OSError):  # it has files
                    path.rmdir()


def check_free(folder: Path) -> None:
    """RunError if a training writes to `folder` now."""
    with _locked(folder):
        pass


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock a folder for the block, which gets whether that is possible; RunError if a training has locked it."""
    if fcntl is None or not folder.is_dir():
        yield False
        return
    descriptor, free, locked = os.open(folder, os.O_RDONLY), True, False
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A training that failed may just have removed the folder that it had made.
            free = locked = os.path.samestat(os.stat(folder), os.fstat(descriptor))
        except (BlockingIOError, FileNotFoundError):
            free = False
        except OSError:  # network file systems raise various errors
            pass
        if not free:
            raise RunError(f"{folder}: another training writes to it; wait for its end, or choose another folder")
        yield locked
    finally:
        os.close(descriptor)


# --------------------------------------------------------------------------- files that are whole, or as they were


def read_file(path: Path) -> bytes:
    """Read a file; OSError unless it is a regular file of at most `LARGEST` bytes.

    It does not open a pipe, where reading would wait, or a device, which has no end.
    """
    if not path.is_file():
        raise OSError(f"{path}: there is no such file")
    if path.stat().st_size > LARGEST:
        raise OSError(f"{path}: it has more than {LARGEST:,} bytes")
    return path.read_bytes()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name `path` in an OSError of the block: for a full disk the system names no file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in one atomic step: at every moment, it is complete, or as it was. An OSError names it."""
    temporary = path.with_name(f".{path.name}.tmp")
    with _naming(path):
        try:
            temporary.write_bytes(data)
            force_to_disk(temporary, os.O_RDWR)
            if path.exists():
                shutil.copymode(path, temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_output(path: Path, data: bytes) -> None:
    """Write to a path of the user's choice: whole if it is a file, also behind a link; a device or a pipe as it is."""
    if path.exists() and not path.is_file():
        with _naming(path):
            path.write_bytes(data)
    else:
        replace_file(path.resolve(), data)


def sync_folder(path: Path) -> None:
    """Force the names in a folder to the disk."""
    if os.name == "posix":
        force_to_disk(path, os.O_RDONLY)
