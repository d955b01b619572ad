"""Faults while the program is used: a training is killed, or the files of a run are damaged. Is anything lost?

    python -m tests.faults --count 1000
    python -m tests.faults --kinds kill --seed 1 --only 17

Each fault is drawn from (kind, seed, number), and a failure is printed with the arguments that repeat it. Where a fault
has a moment, that repeats as well as the machine's clock allows. Needs Linux.
"""

import argparse
import gc
import json
import multiprocessing
import os
import runpy
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from tests.transformer.commands import SMALL
from tests.transformer.runs import bits, contents
from transformer.training.checkpoints import load_run
from transformer.training.log import COLUMNS, Log
from transformer.training.run_folder import RunError, check_new, is_run
from transformer.training.threads import limit_threads

OPTIONS = [*SMALL, "--dropout", 0.1, "--valid-sentences", 2, "--steps", 12, "--valid-every", 3, "--keep", 2,
           "--accumulate", 2]
GRACEFUL = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
LIMIT = 60.0  # seconds that a command may take
POLL = 0.0002  # seconds between looks at the folder
LONGEST = 1_020  # characters of an error


# --------------------------------------------------------------------------- commands, and what they may do


def transformer(arguments, output):
    """Be ``python -m transformer``, in a process of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        os.dup2(os.open(output if number else os.devnull, mode | os.O_APPEND), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", buffering=1) for number in (1, 2))
    sys.argv = ["transformer", *map(str, arguments)]
    runpy.run_module("transformer", run_name="__main__")


class Command:
    """A command in a fork of this process, which has everything imported."""

    def __init__(self, arguments, folder):
        self.output = folder / "output"
        self.output.write_bytes(b"")
        fork = multiprocessing.get_context("fork")
        self.process = fork.Process(target=transformer, args=(arguments, self.output))
        self.process.start()

    def signal(self, number):
        """Send a signal; no effect on a process that has ended."""
        if self.process.is_alive():
            os.kill(self.process.pid, number)

    def problem(self, *statuses):
        """What is wrong with how the command ends, if anything: a status, a traceback, more than one line of error."""
        self.process.join(LIMIT)
        if self.process.is_alive():
            self.process.kill()
            return "it hangs"
        text, status = self.output.read_text(errors="replace"), self.process.exitcode
        errors = [line for line in text.splitlines() if line.startswith("Error: ")]
        if "Traceback" in text or "Warning" in text or status not in statuses:
            return f"status {status}: {short(text)}"
        if len(errors) != (status == 2) or max(map(len, errors), default=0) > LONGEST:
            return f"status {status}, and as errors {short(str(errors))}"
        return None


def short(text):
    """A text in one line of a bearable length."""
    text = " ".join(text.split())
    return text if len(text) < 300 else f"{text[:150]} … {text[-150:]}"


# --------------------------------------------------------------------------- a training that nothing disturbs


@dataclass
class Training:
    """A training done once: its folder, what that and each checkpoint hold, and its seconds."""

    finished: Path
    contents: dict
    checkpoints: dict
    seconds: float


def prepare(folder):
    """The training that is disturbed, after what would be slow in each process that is forked from this one."""
    log = Log(folder / "log.csv")
    log.cut_after(0)
    log.add(**dict.fromkeys(COLUMNS, 1))
    log.draw("exact_match")
    gc.collect()  # of the figure: where a fork frees it, weak references have callbacks, in which Python drops a signal
    start, out = time.monotonic(), folder / "run"
    if problem := Command(line(out), folder).problem(0):
        raise RuntimeError(f"a training fails undisturbed: {problem}")
    checkpoints = {path.name: values(out, path.name) for path in (out / "checkpoints").iterdir()}
    return Training(out, left(out), checkpoints, time.monotonic() - start)


def values(folder, which):
    """All that a checkpoint holds, to compare with ``==``; raises RunError as `load_run` does."""
    run, arrays, moments = load_run(folder, which)
    return {"run": json.dumps(run.to_json(), sort_keys=True), "model": bits(arrays), "optimizer": bits(moments)}


def left(folder):
    """All that a finished training leaves, but for its seconds and its picture, to compare with ``==``."""
    return contents(folder) | {"names": sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))}


# --------------------------------------------------------------------------- kills


def kill(rng, folder, training):
    """One to four signals to one run, at any moment of its life or while it saves; then it goes on to the same end."""
    out, told = folder / "run", []
    for _ in range(rng.choice([1, 1, 2, 4])):
        number, was = rng.choice([signal.SIGKILL, signal.SIGKILL, *GRACEFUL]), is_run(out)
        names, moment = rng.choice([(0, rng.uniform(0, 1.1 * training.seconds)),
                                    (rng.randrange(1, 20), rng.uniform(0, 0.004))])
        told.append(f"{number.name} after {names} names and {moment:.4f} s")
        command, before, seen = Command(line(out), folder), names_in(out), set()
        while len(seen) < names and command.process.is_alive():
            seen |= names_in(out) - before
            time.sleep(POLL)
        command.process.join(moment)
        command.signal(number)
        problem = command.problem(0, -number, 128 + number) or unless_whole(out, was)
        if problem:
            return ", ".join(told), problem
    if problem := Command(line(out), folder).problem(0):
        return ", ".join(told), f"it does not go on: {problem}"
    return ", ".join(told), difference(out, training)


def line(out):
    """The arguments that go on with the training in `out`, or begin it where there is no checkpoint."""
    return ["train", "--out", out, *(["--resume", "--quiet"] if is_run(out) else OPTIONS)]


def names_in(out):
    """The names in a run's folder, and in that of its checkpoints."""
    return {name for folder in (out, out / "checkpoints") if folder.is_dir() for name in os.listdir(folder)}


def unless_whole(out, was):
    """What is wrong with a folder in which a training ended: it is no run yet, or its checkpoints are intact."""
    try:
        if is_run(out):
            values(out, "latest")
            values(out, "best")
        elif was:
            return "the run is gone"
        else:
            check_new(out)
    except RunError as error:
        return f"the folder is damaged: {short(str(error))}"
    return None


def difference(out, training):
    """What a training left that it would not leave undisturbed, or the reverse."""
    found = left(out)
    wrong = [key for key, expected in training.contents.items() if found[key] != expected]
    return f"the end differs in {', '.join(wrong)}" if wrong else None


# --------------------------------------------------------------------------- damage


def flips(rng, folder, training):
    """Up to three damaged files; every checkpoint then loads as it was, or is refused in a line that names it."""
    out, told = folder / "run", []
    shutil.copytree(training.finished, out)
    files = sorted(path for path in out.rglob("*") if path.is_file())
    for path in rng.sample(files, rng.choice([1, 1, 1, 2, 3])):
        told.append(f"{path.relative_to(out)}: {damage(rng, path)}")
    damaged = set()
    for which in ("latest", "best", *training.checkpoints):
        try:
            found = values(out, which)
        except RunError as error:
            if "\n" in str(error) or len(str(error)) > LONGEST:
                return "; ".join(told), f"{which}: {short(str(error))}"
            damaged |= {which} - {"latest", "best"}
        else:
            if found not in ([training.checkpoints[which]] if which in training.checkpoints
                             else training.checkpoints.values()):
                return "; ".join(told), f"{which} loads with other values"
    verify = Command(["info", out, "--verify"], folder)
    problem = verify.problem(*({1} if damaged else {0, 1, 2}))
    missing = [name for name in damaged if name not in verify.output.read_text()]
    if problem is None and missing:
        problem = f"it does not name {', '.join(missing)}"
    return "; ".join(told), problem and f"info --verify: {problem}"


def damage(rng, path):
    """Flip bits of a file, cut it short, or remove it: what was done."""
    data, how = bytearray(path.read_bytes()), rng.choice(["flipped", "flipped", "cut", "removed"])
    if how == "removed":
        path.unlink()
    elif how == "cut":
        path.write_bytes(data[:rng.randrange(len(data) + 1)])
    else:
        for bit in [rng.randrange(len(data) * 8) for _ in range(rng.choice([1, 1, 1, 2, 8])) if data]:
            data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
    return how


KINDS = {"kill": kill, "flips": flips}


# --------------------------------------------------------------------------- the campaign


def main():
    """Meet the faults, print each failure, and end with status 1 if there was one."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--count", type=int, default=100, help="faults of each kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default: %(default)s)")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="the fault of this number, to repeat it")
    options = parser.parse_args()
    failures, temporary = 0, partial(tempfile.TemporaryDirectory, prefix="faults-")
    with limit_threads(1), temporary() as base:
        training = prepare(Path(base))
        for kind in options.kinds:
            start, failed = time.monotonic(), 0
            numbers = range(options.count) if options.only is None else [options.only]
            for number in numbers:
                with temporary() as folder:
                    told, problem = KINDS[kind](Random(f"{kind} {options.seed} {number}"), Path(folder), training)
                if problem is not None:
                    failed += 1
                    print(f"FAILED {told}: {problem}  [--kinds {kind} --seed {options.seed} --only {number}]")
            print(f"{kind}: {len(numbers)} faults, {failed} failures, {time.monotonic() - start:.0f} s", flush=True)
            failures += failed
    parser.exit(int(failures > 0))


if __name__ == "__main__":
    main()
