"""Which tests run which line, measured once and kept in a cache until the source or the test changes."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from coverage import CoverageData

Table = Mapping[str, Sequence[str]]
Run = Callable[[Sequence[str]], None]  # runs pytest with these arguments in a copy of the project

QUICK = 60  # tests of a batch that looks for a quick end
FEW = 20  # with fewer tests on a line than this, those of its folder meet the mutant as well


def digest(root: Path, paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return found.hexdigest()


def folders_of(file: str, table: Table) -> list[str]:
    """The folders of the table that a file is in, the innermost first; a module counts as a folder of its name."""
    module = file.removesuffix(".py")
    return sorted((folder for folder in table if f"{module}/".startswith(f"{folder}/")), key=len, reverse=True)


def file_of(test: str) -> str:
    return test.partition("::")[0]


class Part:
    """What one process measured: a stretch of test files, their seconds by test, and which lines each test ran.

    The digests say what it was measured from: `basis`, all Python files but test files, and each test file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        record = json.loads(path.read_text())
        self.basis: str = record["basis"]
        self.files: dict[str, str] = record["files"]
        self.seconds: dict[str, float | None] = record["seconds"]

    @cached_property
    def data(self) -> CoverageData:
        data = CoverageData(str(self.path.with_suffix(".coverage")))
        data.read()
        return data

    def lines(self, file: str) -> Iterator[tuple[int, list[str]]]:
        """The lines of a source file, wherever the copy of it was, and the tests that ran them."""
        for measured in self.data.measured_files():
            if measured.endswith(f"/{file}"):
                yield from self.data.contexts_by_lineno(measured).items()

    def remove(self) -> None:
        self.path.unlink()
        self.path.with_suffix(".coverage").unlink(missing_ok=True)


class Measured:
    """The passing tests of some folders, each with its seconds and the lines that it runs.

    A test file that is new or has changed is measured, and no other; if a source or a helper of the tests has changed,
    all are.

    Args:
        root: the project.
        table: the folders of the source, and the tests of each.
        cache: the folder of the measurements.
        folders: the folders whose tests may be needed.
        run: called for each stretch of test files to be measured, in as many threads as there are `jobs`.
    """

    def __init__(self, root: Path, table: Table, cache: Path, folders: Iterable[str], run: Run, jobs: int) -> None:
        self.root, self.table = root, table
        self.sources = sorted({folder.partition("/")[0] for folder in table})
        wanted = {file for folder in folders for path in table[folder] for file in self._test_files(root / path)}
        self.files = {file.relative_to(root).as_posix(): digest(root, [file]) for file in wanted}
        python = {file for top in (*self.sources, "tests") for file in (root / top).rglob("*.py")}
        self.basis = digest(root, {file for file in python if not file.name.startswith("test_")
                                   and file.parent != Path(__file__).parent})

        cache.mkdir(exist_ok=True)
        parts = []
        for part in map(Part, sorted(cache.glob("*.json"))):
            parts.append(part) if part.basis == self.basis else part.remove()
        known = {file for part in parts for file in part.files if self._current(part, file)}
        todo = sorted(set(self.files) - known)
        stretches = [stretch for start in range(4 * jobs) if (stretch := todo[start::4 * jobs])]
        with ThreadPoolExecutor(jobs) as pool:
            parts += pool.map(lambda stretch: self._measure(stretch, cache, run), stretches)

        self.parts = parts
        seconds = {test: time for part in parts for test, time in part.seconds.items()
                   if self._current(part, file_of(test))}
        self.seconds = {test: time for test, time in seconds.items() if time is not None}
        self.failing = sorted(seconds.keys() - self.seconds.keys())
        self._lines: dict[str, dict[int, set[str]]] = {}

    @staticmethod
    def _test_files(path: Path) -> Iterable[Path]:
        return [path] if path.is_file() else path.rglob("test_*.py")

    def _current(self, part: Part, file: str) -> bool:
        return file in self.files and part.files.get(file) == self.files[file]

    def _measure(self, stretch: list[str], cache: Path, run: Run) -> Part:
        files = {file: self.files[file] for file in stretch}
        name = hashlib.sha256(json.dumps([self.basis, files]).encode()).hexdigest()[:16]
        coverage, seconds = cache / f"{name}.coverage", cache / f"{name}.seconds"
        coverage.unlink(missing_ok=True)  # of a measurement that was cut off
        run([f"--record={coverage}", *(f"--record-source={top}" for top in self.sources), *stretch])
        record: dict[str, Any] = {"basis": self.basis, "files": files, "seconds": json.loads(seconds.read_text())}
        seconds.unlink()
        coverage.with_suffix(".json").write_text(json.dumps(record))
        return Part(coverage.with_suffix(".json"))

    def on_lines(self, file: str, first: int, last: int) -> set[str]:
        """The tests that run any of these lines."""
        if file not in self._lines:
            lines: dict[int, set[str]] = {}
            for part in self.parts:
                for line, tests in part.lines(file):
                    lines.setdefault(line, set()).update(
                        test for test in tests if test in self.seconds and self._current(part, file_of(test)))
            self._lines[file] = lines  # when it is whole: other threads read it
        return {test for line in range(first, last + 1) for test in self._lines[file].get(line, ())}

    def batches(self, file: str, first: int, last: int) -> list[list[str]]:
        """The tests that meet a mutant of these lines: those that run them, quick ones first, and stand-ins.

        The quick ones of the mutant's own folder are a batch before those of others: each file takes time to load.
        """
        places = next(places for folder in folders_of(file, self.table)
                      if (places := [place for place in self.table[folder] if (self.root / place).exists()]))
        near = {test for test in self.seconds if any(f"{file_of(test)}/".startswith(f"{place}/") for place in places)}
        tests = self.on_lines(file, first, last)
        quick, others = self._spread(tests & near)[:QUICK], self._spread(tests - near)[:QUICK]
        rest = sorted(tests.difference(quick, others), key=lambda test: (test not in near, test))
        stand_ins = self._spread(near - tests) if len(tests) < FEW else []
        return [batch for batch in (quick, others, rest, stand_ins) if batch]

    def _spread(self, tests: Iterable[str]) -> list[str]:
        """Tests by time, but of each parametrised test first the quickest case, then of each the next one."""
        cases: Counter[str] = Counter()
        turn = {}
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            function = test.partition("[")[0]
            turn[test] = cases[function]
            cases[function] += 1
        return sorted(turn, key=lambda test: turn[test])  # stable: within a turn by time
