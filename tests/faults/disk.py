"""The disk of a training is full, or becomes full, or takes no further file; then there is room again."""

from __future__ import annotations

import functools
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from tests.faults.children import Ended, command
from tests.faults.kill import SHARE_NEW, goes_on, line, whole
from tests.faults.trainings import LIMIT, Base
from tests.faults.verdict import short, wrong

ROOM = "size=64m,nr_inodes=4096"  # of a disk with room
BLOCK = 4096
REASONS = ("No space left on device", "File too large")
SHORTAGES = {"bytes": "{:.0f} bytes free", "files": "{:.0f} files free", "later": "full after {:.3f} s",
             "limit": "no file above {:.0f} bytes"}


def fault(rng: Random, folder: Path, base: Base) -> tuple[str, str | None]:
    """A new or a resumed training whose disk has too little room, or which may write no large file."""
    training, resumed, new = rng.choice(base.trainings), rng.random() < 0.5, rng.random() < SHARE_NEW
    need = sum(path.stat().st_size // BLOCK + 1 for path in training.finished.rglob("*"))
    amounts = {"bytes": rng.randrange(need + need // 2) * BLOCK, "files": rng.randrange(40),
               "later": rng.uniform(0, training.seconds) + new * base.imports, "limit": rng.randrange(2, 40) * 1024}
    shortage = rng.choice(list(amounts)) if can_mount() else "limit"
    amount = amounts[shortage]
    told = f"{SHORTAGES[shortage].format(amount)}, {'resumed' if resumed else 'begun'}{' in a new process' * new}"
    with disk_in(folder) if shortage != "limit" else tempfile.TemporaryDirectory(dir=folder) as disk:
        out = Path(disk) / "run"
        if resumed:
            shutil.copytree(training.stopped, out)
        if shortage == "bytes":
            fill(out.parent, int(amount))
        elif shortage == "files":
            _remount(out.parent, f"nr_inodes={_inodes(out.parent) + int(amount)}")
        limits = {resource.RLIMIT_FSIZE: int(amount)} if shortage == "limit" else {}
        child = command(line(training, out), folder, new=new, limits=limits)
        if shortage == "later":
            child.is_over(amount)
            fill(out.parent, 0)
        problem = _judged(child.wait(LIMIT), out, resumed)
        if shortage != "limit":
            (out.parent / "ballast").unlink(missing_ok=True)
            _remount(out.parent, ROOM)
        return told, problem or goes_on(training, out, folder)


def _judged(ended: Ended | None, out: Path, was: bool) -> str | None:
    """What is wrong with how the training ended, and with what it left."""
    problem = wrong(ended, names=out)
    if problem is not None:
        return problem
    if ended.status == 2 and not any(reason in ended.errors for reason in REASONS):
        return f"the line does not give the reason: {short(ended.errors)}"
    leftovers = [path.name for path in out.rglob(".*")]
    return f"left over: {', '.join(leftovers)} after {short(ended.errors)}" if leftovers else whole(out, was)


@functools.cache
def can_mount() -> bool:
    """Whether this process may make disks."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with disk_in(Path(folder)):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


@contextmanager
def disk_in(folder: Path) -> Iterator[Path]:
    """A disk in memory, as a folder."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", ROOM, "tmpfs", disk], check=True, stderr=subprocess.DEVNULL)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path, free: int) -> None:
    """Fill the disk, but for so many bytes."""
    _remount(disk, "size=2m")
    with open(disk / "ballast", "wb", buffering=0) as file, suppress(OSError):
        while os.statvfs(disk).f_bavail * BLOCK > free:
            file.write(bytes(BLOCK))


def _inodes(disk: Path) -> int:
    """The number of files on it, as the disk counts them."""
    return os.statvfs(disk).f_files - os.statvfs(disk).f_ffree


def _remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)
