"""Command lines drawn from the options of all commands, with values that are right, at an edge, or absurd."""

from __future__ import annotations

import os
import resource
import shutil
import stat
from pathlib import Path
from random import Random

import click

from tests.faults.children import Steps, command
from tests.faults.kill import SHARE_NEW
from tests.faults.trainings import SMALL, Base
from tests.faults.verdict import short, within, wrong
from transformer.cli import main

SECONDS = 10.0  # that a command may take, a training's updates apart
ROOM = 3 << 30  # bytes of address space beyond those of this process
SHORT = [*SMALL, "--steps", "2", "--valid-every", "2", "--schedule", "constant"]  # a training of a tenth of a second
LINES = b"a b c\n\nb\n"


def fault(rng: Random, folder: Path, base: Base) -> tuple[str, str | None]:
    """A line, in a folder with runs and with odd files."""
    training = rng.choice(base.trainings)
    _furnish(folder, training.finished, training.stopped)
    line, steps = _line(rng), Steps()
    given = rng.choice([LINES, LINES, b"", b"\xff\n", b"a " * 1000, b"\x00\n", "ａ🙂\u202e\n".encode()])
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    new = rng.random() < SHARE_NEW and all(map(_can_be_given, line))
    child = command(line, folder, new=new, given=given, steps=steps, within=folder,
                    limits={resource.RLIMIT_AS: size + ROOM})
    ended, trained = within(child, SECONDS, steps)
    allowed = (0, 2, *([143] if trained else []), *([1] if "--verify" in line else []))
    shown = " ".join(ascii(word)[1:-1] if len(word) < 60 else f"<{len(word):,} characters>" for word in line)
    return f"{short(shown)} < {given[:8]!r}{' in a new process' * new}", wrong(ended, allowed)


def _furnish(folder: Path, finished: Path, stopped: Path) -> None:
    """What the paths in a line may name; none is outside of `folder`, which a training or a page might overwrite."""
    shutil.copytree(finished, folder / "run")
    shutil.copytree(stopped, folder / "stopped")
    for name in ("empty", "caf\udce9"):
        (folder / name).mkdir()
    for name in ("text", "other"):
        (folder / name).write_bytes(b"a b\nb a\n" * 8)
    (folder / "odd text").write_bytes(b"\xff\xfe\x00\n" * 8)
    (folder / "nothing").touch()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    if os.geteuid() == 0:
        os.mknod(folder / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))


def _can_be_given(word: str) -> bool:
    """Whether a new process can have the word in its command line."""
    return "\0" not in word and len(word) < 100_000 and not any("\ud800" <= letter < "\udc80" for letter in word)


PATHS = ["run", "stopped", "empty", "caf\udce9", "text", "odd text", "nothing", "loop", "null", "new/run", "none/x/y",
         "", ".", "..", "-", "x" * 300, "a\nb", "🙂", "\u202eab", "run/checkpoints", "run/latest", "text/x"]
TEXTS = ["", " ", "a b", "a", "x" * 1_000_000, "é" * 5_000, "🙂", "\u202eab", "\ud800", "\udcff", "a\0b", "a\nb", "\t",
         "--", "-", "--steps", "<pad>", "a " * 200, "%s", "{}", "\x1b[31m"]
INTEGERS = [0, -1, 1, 2, 2**31 - 1, 2**31, 2**63, 2**64, 10**9, 10**12, 10**20, 10**30, "9" * 5000, "1.5",
            "1e3", "x", ""]
FLOATS = [0, -1, 1, 1e-300, 1e300, "1e400", "nan", "inf", "-inf", "1e-400", "x", "", 10**400, "0x1", "1_0"]
DEVICES = ["cpu", "cpu:0", "cuda", "cuda:99", "cuda:x", "tpu", "", "cuda:-1", f"cuda:{10**30}"]
ODD = {"device": DEVICES, "cell": ["0,0", "1,2", "-1,0", "9,9", "x", ",", f"{10**30},0"],
       "step": ["A", "dS", "dWQ", "S", "none", ""], "checkpoint": ["best", "latest", "00000003", "x", "", "../x"],
       "attentions": ["decoder.layers.0.cross_attention", "decoder.layers.0", "none", "", "decoder.layers.9"]}


def _line(rng: Random) -> list[str]:
    """A line that is right, and options that need not be, at its end or anywhere."""
    if rng.random() < 0.05:
        return rng.choice([[], ["--help"], ["--version"], [rng.choice(TEXTS)], ["--x"], ["train"], ["explain", "run"],
                           ["translate", "--help"], ["info"], ["info", "run", "run"]])
    name = rng.choice(list(BEGINNINGS))
    line = [name, *rng.choice(BEGINNINGS[name])]
    options = [option for option in main.commands[name].params if isinstance(option, click.Option)]
    drawn = []
    for option in rng.choices(options, k=rng.choice([0, 1, 1, 2, 3, 5])) if options else []:
        drawn += _given(rng, option)
    if rng.random() < 0.1:
        drawn.insert(rng.randrange(len(drawn) + 1), rng.choice([*TEXTS, *PATHS]))
    return line + drawn if rng.random() < 0.9 else [name, *drawn, *line[1:]]


BEGINNINGS: dict[str, list[list[str]]] = {
    "train": [[*SHORT, "--out", "new"], [*SHORT, "--out", "new"], [*SHORT[2:], "--out", "new"],
              [*SHORT[2:], "--train", "text", "other", "--valid", "text", "other", "--out", "new"],
              ["--out", "stopped", "--resume"], ["--out", "run", "--resume"]],
    "translate": [["run"], ["stopped"]],
    "evaluate": [["run", "--count", "3"], ["run", "--source", "text", "--target", "other"]],
    "explain": [["run", "a b", "--text"], ["run", "a b", "b a", "--text"], ["run", "a b", "--html", "page.html"]],
    "info": [["run"], ["stopped"], ["empty"]]}


def _given(rng: Random, option: click.Option) -> list[str]:
    """An option with a value for each of its places."""
    name = rng.choice([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return [name]
    count = option.nargs if rng.random() < 0.97 else rng.randrange(3)
    return [name, *(_value(rng, option) for _ in range(count))]


def _value(rng: Random, option: click.Option) -> str:
    kind, odd = option.type, rng.random()
    if odd < 0.07:
        return rng.choice(TEXTS)
    if option.name in ODD:
        return rng.choice(ODD[option.name])
    if isinstance(kind, click.Choice):
        return rng.choice(list(kind.choices)) if odd < 0.8 else rng.choice(["", "none", kind.choices[0].upper()])
    if isinstance(kind, click.types.IntParamType):
        return str(rng.choice([1, 2, 3, 4, 8, 16] if odd < 0.6 else INTEGERS))
    if isinstance(kind, click.types.FloatParamType):
        return str(rng.choice([0.1, 0.5, 0.9, 0.001, 2.0] if odd < 0.6 else FLOATS))
    if isinstance(kind, click.Path) or option.name in ("source", "target"):
        return rng.choice(["text", "new", "page", "run"] if odd < 0.4 else PATHS)
    return rng.choice(TEXTS)
