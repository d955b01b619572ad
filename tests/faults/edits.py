"""A run's description is edited, with its checksum repaired, or one of its files becomes something else."""

from __future__ import annotations

import copy
import json
import os
import resource
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from minigrad.checkpoint import load_tensors, save_tensors

from tests.faults.children import Steps, command
from tests.faults.trainings import Base
from tests.faults.verdict import within, wrong

SECONDS = 2.0  # of work that a command may do
MEMORY = 200 << 20  # bytes that it may take
COMMANDS: tuple[tuple[list[str], bytes], ...] = (
    (["info"], b""), (["info"], b""), (["translate"], b"a b c\n"), (["translate", "--checkpoint", "latest"], b"1\n\n2"),
    (["evaluate", "--count", "3"], b""), (["explain", "a b", "--text"], b""), (["train", "--resume", "--quiet"], b""),
    (["train", "--resume", "--quiet"], b""))


def fault(rng: Random, folder: Path, base: Base) -> tuple[str, str | None]:
    """One to three edits of a checkpoint, or another kind of file in place of one; then a command uses the run."""
    training, out = rng.choice(base.trainings), folder / "run"
    shutil.copytree(rng.choice([training.finished, training.stopped]), out)
    (out / "history.png").unlink(missing_ok=True)
    told = _replace(rng, out, folder) if rng.random() < 0.25 else _edit(rng, out)
    arguments, given = rng.choice(COMMANDS)
    place = ["--out", str(out)] if arguments[0] == "train" else [str(out)]
    steps = Steps()
    child = command([arguments[0], *place, *arguments[1:]], folder, given=given, steps=steps, within=folder,
                    limits={resource.RLIMIT_AS: 16 << 30})
    ended, trained = within(child, 5 * SECONDS, steps)
    problem = wrong(ended, (0, 2, 143) if trained else (0, 2))
    if problem is None and not trained and ended.work > SECONDS:
        problem = f"it works for {ended.work:.1f} s"
    if problem is None and ended.memory > MEMORY:
        problem = f"it takes {ended.memory >> 20} MiB"
    if problem is None and SECRET in ended.output + ended.errors:
        problem = "it prints another file"
    return f"{told}; {' '.join(arguments)}", problem


# ---------------------------------------------------------------- edits of run.json


def _edit(rng: Random, out: Path) -> str:
    """Edit the run.json of the checkpoint that a pointer names, which need not be of the same kind afterwards."""
    pointers = [out / name for name in ("latest", "best") if (out / name).exists()]
    checkpoint = out / "checkpoints" / rng.choice(pointers).read_text().strip()
    values = json.loads((checkpoint / "run.json").read_text(encoding="utf-8"))
    told = [_change(rng, values) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    text = json.dumps(values, ensure_ascii=rng.random() < 0.8)
    if rng.random() < 0.1:
        deep = rng.choice([900, 20_000, 200_000])
        text = text.replace(": {", ": " + "[" * deep + "]" * deep + ', "": {', 1)
        told.append(f"a list nested {deep} deep")
    data = text.encode("utf-8", errors="surrogatepass")
    (checkpoint / "run.json").write_bytes(data)
    for path in checkpoint.glob("*.safetensors"):
        arrays, metadata = load_tensors(path)
        save_tensors(path, arrays, metadata | {"run": f"{zlib.crc32(data):08x}"})
    return f"{checkpoint.name}: {', '.join(told)}"


def _change(rng: Random, values: dict[str, Any]) -> str:
    """Change one place of the tree: each entry of its top is as likely as any other, and so on downwards."""
    place, name = values, rng.choice(list(values))
    path = [name]
    while isinstance(place[name], (dict, list)) and place[name] and rng.random() < 0.9:
        place = place[name]
        name = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        path.append(name)
    where = ".".join(map(str, path))
    action = rng.random()
    if action < 0.1:
        del place[name]
        return f"without {where}"
    if action < 0.2 and isinstance(place, dict):
        added = rng.choice(TEXTS)
        place[added] = _value(rng)
        return f"an entry {added[:20]!r} beside {where}"
    if action < 0.3 and isinstance(place, list):
        place[:] = rng.choice([place[:-1], [*place, place[0]], place[::-1], place * 2])
        return f"a list of {len(place)} around {where}"
    place[name] = _near(rng, place[name]) if rng.random() < 0.4 else _value(rng)
    if name in ("train_count", "valid_count") and isinstance(place[name], int) and place[name] > 10_000:
        place[name] *= 10**12  # else it is big, but not impossible, and to make so many pairs takes its time
    return f"{where} = {json.dumps(place[name])[:50]}"


def _near(rng: Random, value: Any) -> Any:
    """A value of the same type that may well pass."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return rng.choice([value + 1, value - 1, -value, 2 * value, value * 10**6, value / 2, 0])
    if isinstance(value, str):
        return rng.choice([value + "x", value[::-1], value.upper(), "", f" {value}"])
    return copy.deepcopy(value) if value else None


def _value(rng: Random) -> Any:
    return rng.choice([rng.choice(NUMBERS), rng.choice(NUMBERS), rng.choice(TEXTS), rng.choice(OTHERS)])


NUMBERS = [0, 1, 2, -1, 3.5, 10**8, 2**31, 2**63, 10**12, 10**30, 10**400, 1e308, -1e308, 1e-300, float("nan"),
           float("inf")]
TEXTS = ["", "x", "\ud800", "\x00", "é" * 300, "x" * 100_000, "a\nb", "\u202e", "../../..", "copy", "words", "🙂"]
OTHERS = [None, True, False, [], {}, [None], [1, 2, 3], [[[[]]]], {"": None}, ["a"] * 10_000, {"kind": "words"}]

# ---------------------------------------------------------------- other kinds of files


SECRET = "what another file holds"


def _replace(rng: Random, out: Path, folder: Path) -> str:
    """Put another kind of file in the place of a file or a folder."""
    path, (other, make) = rng.choice(sorted(out.rglob("*"))), rng.choice(list(REPLACEMENTS.items()))
    (folder / "other").write_text(SECRET)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    make(path)
    return f"{path.relative_to(out)} is {other}"


def _run(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.name == "run")


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 20 << 30)


REPLACEMENTS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo, "a folder": Path.mkdir, "empty": Path.touch, "20 GiB of zeros": _huge,
    "a link to itself": lambda path: path.symlink_to(path.name), "a link to nothing": lambda p: p.symlink_to("none"),
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to another file": lambda path: path.symlink_to(_run(path).with_name("other")),
    "a link to a folder": lambda path: path.symlink_to("/proc")}
