"""Two checkouts of this project against each other: what a change costs, or gains, in time and memory.

    python benchmarks/old_against_new.py ../old                          against the checkout that holds this file
    python benchmarks/old_against_new.py ../old ../new --only training import --sizes toy --rounds 8     a first look
    git worktree add ../old v0.1                                         gives a checkout of an earlier state

Each checkout runs in processes of its own, with nothing but that checkout on PYTHONPATH. The two are alive at the same
time and alternate in short turns, old new old new …; the ratio new / old is taken within each pair of turns, so below 1
the new one is better. The table has the medians and the quartiles of the ratio. Its last column has the median ratio of
the time that processors worked, to which other programs on the machine add little. Two processes of one program can
differ as long as they live, by where their memory lies, so a measure takes several pairs of processes, one after the
other, in which old and new begin in turn. A checkout measured against itself shows how large the noise is.

What is measured:

- training: an update in the training loop of the command ``train``, by sizes and dropout of workloads.py;
- decoding: 64 sentences, greedily, as in decoding.py;
- import: minigrad and transformer, in fresh processes;
- memory: the peak of the first updates, beyond the import, in fresh processes.

Both should compute the same: the losses of the first updates, the weights after them, and the translations are compared
bit by bit, and every difference is reported. It does not end the run: a change of dropout's masks changes losses, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import page
import paired
import turns
from decoding import WORKLOAD
from workloads import DRY, SIZES, Workload

OLD, NEW = "old", "new"
STARTS, LEAST_ROUNDS = 3, 4  # pairs of processes of a measure, if each has so many turns
LIMIT = 1.03  # a row is named below the table if all its ratios are above this
IMPORT = """
import time
start, worked = time.perf_counter(), time.process_time()
import {module}
times = {{"ms": 1e3 * (time.perf_counter() - start), "cpu ms": 1e3 * (time.process_time() - worked)}}
import json
print(json.dumps({{"times": times, "file": {module}.__file__}}))
"""

Row = dict[str, Any]  # "unit", what `paired.compare` gives, and "cpu", the ratio of the processors' time, for some


class Comparison:
    """Two checkouts, and what was found out about them.

    Attributes:
        checkouts: the folders of OLD and NEW.
        options: of the command line.
        rows: by title, in the order of the table.
        checks: of what both computed, by title: a sentence, "equal bits" if they are.
        files: where the measured processes imported minigrad from.
    """

    def __init__(self, checkouts: Mapping[str, Path], options: argparse.Namespace) -> None:
        self.checkouts, self.options = checkouts, options
        self.rows: dict[str, Row] = {}
        self.checks: dict[str, str] = {}
        self.files: dict[str, str] = {}

    # ------------------------------------------------------------------------- measures

    def training(self) -> None:
        """A step of the training loop, for every workload."""
        for workload in self.workloads((0.0, 0.1)):
            title = f"training, {workload.title}"
            self.add_times(title, self.rounds(title, "training", workload))

    def decoding(self) -> None:
        """Translating a batch."""
        title = "greedy decoding"
        workload = DRY if self.options.dry else WORKLOAD
        self.add_times(title, self.rounds(title, "decoding", workload))

    def imports(self) -> None:
        """The import of each package, with its bytecode compiled."""
        for module in ("minigrad", "transformer"):
            # -P: the folder that this command is given in may hold packages of these names, and is not searched
            command = [sys.executable, "-P", "-c", IMPORT.format(module=module)]
            rounds: list[paired.Round] = []
            with tempfile.TemporaryDirectory() as bytecode:
                compiled = {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
                for _ in range(self.options.rounds + 1):
                    answers: dict[str, Any] = {name: paired.measure(command, self.environment(name) | compiled)
                                               for name in (OLD, NEW)}
                    for name, answer in answers.items():
                        self.check_origin(name, answer["file"])
                    rounds.append({name: answer["times"] for name, answer in answers.items()})
            self.add_times(f"import {module}", rounds[1:])  # the first compiles

    def memory(self) -> None:
        """The peak of the first updates, for each size."""
        for workload in self.workloads((0.1,)):
            title, rounds = f"memory, {workload.title}", list[paired.Round]()
            for start in range(self.starts):
                with self.started(start, "training", workload) as processes:
                    self.compare_answers(title, processes)
                    rounds.append({name: {"memory": process.ready["memory"]} for name, process in processes.items()})
            self.add(title, "MiB", paired.compare(rounds, OLD, NEW)["memory"])

    # ------------------------------------------------------------------------- processes

    @property
    def starts(self) -> int:
        """How many pairs of processes a measure takes."""
        return min(STARTS, -(-self.options.rounds // LEAST_ROUNDS))

    def workloads(self, dropouts: Sequence[float]) -> list[Workload]:
        """The sizes that were asked for, with these options."""
        sizes = [DRY] if self.options.dry else [SIZES[name] for name in self.options.sizes]
        return [replace(size, dropout=dropout) for size in sizes for dropout in dropouts]

    def environment(self, name: str) -> dict[str, str]:
        """The changes of the environment in which one of the checkouts runs."""
        return {**dict.fromkeys(paired.THREADS, str(self.options.threads)), **paired.KEEP_FREED_MEMORY,
                "PYTHONPATH": str(self.checkouts[name]), "PYTHONHASHSEED": "0"}

    @contextmanager
    def started(self, start: int, kind: str, workload: Workload) -> Iterator[dict[str, turns.Process]]:
        """A process of each checkout, ready; the old one has the first turn, at every second start the new one."""
        with ExitStack() as stack:
            processes = {}
            for name in ((OLD, NEW), (NEW, OLD))[start % 2]:
                command = [sys.executable, str(Path(__file__).with_name("checkout_process.py")), kind,
                           "--checkout", str(self.checkouts[name]), "--workload", workload.to_json(),
                           "--threads", str(self.options.threads)]
                processes[name] = turns.Process(f"{kind} of the {name} checkout", command, self.environment(name))
                stack.callback(processes[name].close)
            yield processes

    def rounds(self, title: str, kind: str, workload: Workload) -> list[paired.Round]:
        """As many pairs of turns as the options say, over `starts` pairs of processes; the answers are compared."""
        rounds: list[paired.Round] = []
        for start in range(self.starts):
            share = self.options.rounds * (start + 1) // self.starts - len(rounds)
            with self.started(start, kind, workload) as processes:
                self.compare_answers(title, processes)
                rounds += turns.take(processes, share, self.options.seconds)
        return rounds

    # ------------------------------------------------------------------------- results

    def add_times(self, title: str, rounds: Sequence[paired.Round]) -> None:
        """Add a row of times, of which there are two kinds."""
        compared = paired.compare(rounds, OLD, NEW)
        self.add(title, "ms", {**compared["ms"], "cpu": compared["cpu ms"]["ratio"]})

    def add(self, title: str, unit: str, row: Row) -> None:
        """Add a row, and print it."""
        self.rows[title] = {"unit": unit, **row}
        print(line(title, self.rows[title]), file=sys.stderr, flush=True)

    def check_origin(self, name: str, file: str) -> None:
        """SystemExit if a process of this checkout imported the package of another folder."""
        if not Path(file).is_relative_to(self.checkouts[name]):
            raise SystemExit(f"{file} was imported, and {self.checkouts[name]} was to be measured")
        if "minigrad" in Path(file).parts[-2:]:
            self.files[name] = file

    def compare_answers(self, title: str, processes: Mapping[str, turns.Process]) -> None:
        """Remember whether both computed the same."""
        for name, process in processes.items():
            self.check_origin(name, process.ready["file"])
        found = difference(processes[OLD].ready, processes[NEW].ready)
        if self.checks.get(title, EQUAL) == EQUAL:
            self.checks[title] = found

    def report(self) -> dict[str, Any]:
        """What is written to a file."""
        return {"what": "two checkouts", "unit": None, "machine": paired.machine(["numpy"]),
                "rounds": self.options.rounds, "threads": self.options.threads, "files": self.files,
                "checks": self.checks, "results": self.rows}

    def summary(self) -> str:
        """The table, what both computed, and which rows are slower."""
        lines = ["| | old | new | unit | new / old | quartiles | CPU time |", "|---|---:|---:|---|---:|---:|---:|"]
        lines += [line(title, row) for title, row in self.rows.items()]
        lines += ["", page.circumstances(self.report()), ""]
        lines += [f"{name}: {file}" for name, file in self.files.items()]
        other = {title: found for title, found in self.checks.items() if found != EQUAL}
        lines += [f"computed by both: {EQUAL} in {len(self.checks) - len(other)} of {len(self.checks)}"]
        lines += [f"  NOT EQUAL: {title}: {found}" for title, found in other.items()]
        above = [title for title, row in self.rows.items() if min(ratios(row)) > LIMIT]
        lines += [f"more than {LIMIT} of the old: {'; '.join(above) or 'nothing'}"]
        return "\n".join(lines)


EQUAL = "equal bits"


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """How far the answers of two processes are apart."""
    if "translations" in old:
        wrong = sum(a != b for a, b in zip(old["translations"], new["translations"], strict=True))
        return f"{wrong} of {len(old['translations'])} translations differ" if wrong else EQUAL
    if old["losses"] != new["losses"]:
        furthest = max(abs(a - b) for a, b in zip(old["losses"], new["losses"], strict=True))
        return f"losses differ by up to {furthest:.3g}, the first is {old['losses'][0]:.6g}"
    return EQUAL if old["weights"] == new["weights"] else "equal losses, but the weights after these updates differ"


def ratios(row: Row) -> list[float]:
    """The medians of the ratios that a row has: one, or also that of the processors' time."""
    return [row[kind]["median"] for kind in ("ratio", "cpu") if kind in row]


def line(title: str, row: Row) -> str:
    """A line of the table."""
    ratio, *cpu = ratios(row)
    return (f"| {title} | {page.number(row[OLD]['median'])} | {page.number(row[NEW]['median'])} | {row['unit']} | "
            f"{ratio:.3f} | {row['ratio']['low']:.3f} – {row['ratio']['high']:.3f} | "
            f"{f'{cpu[0]:.3f}' if cpu else '–'} |")


MEASURES: dict[str, Callable[[Comparison], None]] = {
    "training": Comparison.training, "decoding": Comparison.decoding, "import": Comparison.imports,
    "memory": Comparison.memory}


def checkout(folder: str) -> Path:
    """The folder of a checkout; an error if there is no minigrad and no transformer in it."""
    path = Path(folder).resolve()
    if not all((path / package / "__init__.py").exists() for package in ("minigrad", "transformer")):
        raise argparse.ArgumentTypeError(f"{folder} does not hold the packages minigrad and transformer")
    return path


def main() -> None:
    """Measure, print the table, and write the file."""
    parser = paired.parser(__doc__, rounds=30, seconds=0.15, threads=1)
    parser.add_argument("old", type=checkout, metavar="OLD_CHECKOUT")
    parser.add_argument("new", type=checkout, metavar="NEW_CHECKOUT", nargs="?", default=str(paired.ROOT))
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), default=list(MEASURES), help="what to measure")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=["toy", "small", "mid"])
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the results")
    options = paired.parsed(parser)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    comparison = Comparison({OLD: options.old, NEW: options.new}, options)
    for name in options.only:
        MEASURES[name](comparison)
        if options.out is not None:
            options.out.write_text(json.dumps(comparison.report(), indent=2, ensure_ascii=False) + "\n",
                                   encoding="utf-8")
    print(comparison.summary())


if __name__ == "__main__":
    main()
