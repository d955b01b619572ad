"""A finished run is damaged: flipped bits, files that are cut short, zeroed in part, exchanged or gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.faults.children import command
from tests.faults.trainings import LIMIT, Base, Training, values
from tests.faults.verdict import LONGEST, short, wrong
from transformer.cli.info import info
from transformer.training.run_folder import RunError

VERIFIES = any("--verify" in parameter.opts for parameter in info.params)


def fault(rng: Random, folder: Path, base: Base) -> tuple[str, str | None]:
    """One damage to up to three files; every checkpoint then loads as it was, or is refused in a line."""
    training, out = rng.choice(base.trainings), folder / "run"
    shutil.copytree(training.finished, out)
    files = sorted(path for path in out.rglob("*") if path.is_file())
    told = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        damage, path = rng.choice(DAMAGES), rng.choice(files)
        if path.exists():
            told.append(f"{path.relative_to(out)}: {damage(rng, path, files)}")
    problem, damaged = _loads(training, out)
    touched = {path.parent.name for path in files if _bytes(path) != _bytes(training.finished / path.relative_to(out))}
    problem = problem or next((f"{name} is intact and does not load" for name in damaged - touched), None)
    if problem is None and VERIFIES:
        problem = _verified(out, folder, damaged, bool(touched), set(training.checkpoints))
    if problem is None and rng.random() < 0.2:
        problem = rng.choice([_translates, _goes_on])(training, out, folder, damaged)
    return "; ".join(told), problem


def _flip(rng: Random, path: Path, files: list[Path]) -> str:
    data = bytearray(path.read_bytes())
    bits = [rng.randrange(len(data) * 8) for _ in range(rng.choice([1, 1, 1, 2, 8]))] if data else []
    for bit in bits:
        data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return f"{len(bits)} bits from {min(bits, default=0)} on are flipped"


def _cut(rng: Random, path: Path, files: list[Path]) -> str:
    length = rng.choice([0, rng.randrange(path.stat().st_size + 1)])
    path.write_bytes(path.read_bytes()[:length])
    return f"cut to {length} bytes"


def _zero(rng: Random, path: Path, files: list[Path]) -> str:
    data = path.read_bytes()
    first = rng.randrange(len(data) // 512 + 1) * 512
    length = min(rng.choice([512, 4096]), len(data) - first)
    path.write_bytes(data[:first] + bytes(length) + data[first + length:])
    return f"{length} bytes from {first} on are zero"


def _exchange(rng: Random, path: Path, files: list[Path]) -> str:
    other = rng.choice([file for file in files if file.exists() and (file.name == path.name or rng.random() < 0.2)])
    if other == path:
        return _flip(rng, path, files)
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)
    return f"exchanged with {other.parent.name}/{other.name}"


def _remove(rng: Random, path: Path, files: list[Path]) -> str:
    path.unlink()
    return "removed"


def _append(rng: Random, path: Path, files: list[Path]) -> str:
    more = rng.randbytes(rng.choice([1, 100, 10_000]))
    path.write_bytes(path.read_bytes() + more)
    return f"{len(more)} random bytes more"


DAMAGES: tuple[Callable[[Random, Path, list[Path]], str], ...] = (_flip, _flip, _flip, _cut, _zero, _exchange, _remove,
                                                                  _append)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _loads(training: Training, out: Path) -> tuple[str | None, set[str]]:
    """What is wrong with what is loaded; and the names of the checkpoints that are refused."""
    damaged = set()
    for which in ("latest", "best", *training.checkpoints):
        try:
            found = values(out, which)
        except RunError as error:
            if "\n" in str(error) or len(str(error)) > LONGEST:
                return f"{which}: a message of {len(str(error)):,} characters: {short(str(error))}", damaged
            damaged |= {which} - {"latest", "best"}
            continue
        named = training.checkpoints if which in ("latest", "best") else {which: training.checkpoints[which]}
        if found not in named.values():
            return f"{which} loads with other values", damaged
    return None, damaged


def _verified(out: Path, folder: Path, damaged: set[str], touched: bool, names: set[str]) -> str | None:
    ended = command(["info", out, "--verify"], folder).wait(LIMIT)
    allowed = {1} if damaged else {0, 1, 2} if touched else {0}
    problem = wrong(ended, allowed)
    if problem is not None:
        return f"info --verify: {problem}"
    missing = [name for name in damaged if name not in ended.output + ended.errors]
    return f"info --verify does not name {', '.join(missing)}: {short(ended.output)}" if missing else None


def _translates(training: Training, out: Path, folder: Path, damaged: set[str]) -> str | None:
    which = "latest" if damaged else "best"
    ended = command(["translate", out, "--checkpoint", which], folder, given=b"a b\n").wait(LIMIT)
    problem = wrong(ended, names=out)
    if problem is None and ended.status == 0 and ended.output.count("\n") != 1:
        problem = f"{ended.output!r} and not a line"
    return f"translate: {problem}" if problem else None


def _goes_on(training: Training, out: Path, folder: Path, damaged: set[str]) -> str | None:
    """What is wrong if the run goes on from an intact checkpoint, when there is one with an optimizer, to its end."""
    intact = sorted(name for name in training.checkpoints.keys() - damaged if name.isdigit())
    if not intact or not VERIFIES:
        return None
    child = command(["train", "--out", out, "--resume-from", intact[0], "--quiet"], folder)
    problem = wrong(child.wait(LIMIT), (0,))
    last = max(name for name in training.checkpoints if name.isdigit())
    end = None if problem else values(out, last)["model"]  # from an older one, with a new optimizer, to another end
    if end is not None and intact[0] == last and end != training.checkpoints[last]["model"]:
        problem = "the end is another"
    return f"--resume-from {intact[0]}: {problem}" if problem else None
