"""Which tests run which line, measured once and kept in a cache until the source or the test changes."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coverage import CoverageData

Table = Mapping[str, Sequence[str]]
Run = Callable[[Sequence[str]], None]  # runs pytest with these arguments in a copy of the project

QUICK = 60  # tests of a batch that looks for a quick end
FEW = 20  # with fewer tests on a line than this, those of its folder meet the mutant as well


def digest(root: Path, paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:16]


def folders_of(file: str, table: Table) -> list[str]:
    """The folders of the table that a file is in, the innermost first; a module counts as a folder of its name."""
    module = file.removesuffix(".py")
    return sorted((folder for folder in table if f"{module}/".startswith(f"{folder}/")), key=len, reverse=True)


class Measured:
    """The passing tests of some folders, each with its seconds and the lines that it runs.

    A test file that is new or has changed is measured, and no other; if a source or a helper of the tests has changed,
    all are.

    Args:
        root: the project.
        table: the folders of the source, and the tests of each.
        cache: the folder of the measurements.
        folders: the folders whose tests may be needed.
        run: called for each test file to be measured, in as many threads as there are `jobs`.
    """

    def __init__(self, root: Path, table: Table, cache: Path, folders: Iterable[str], run: Run, jobs: int) -> None:
        self.root, self.table, self._run = root, table, run
        self.sources = sorted({folder.partition("/")[0] for folder in table})
        python = {file for top in (*self.sources, "tests") for file in (root / top).rglob("*.py")}
        self.cache = cache / digest(root, {file for file in python if not file.name.startswith("test_")
                                           and file.parent != Path(__file__).parent})
        self.cache.mkdir(parents=True, exist_ok=True)
        for other in set(cache.iterdir()) - {self.cache}:  # of other sources
            shutil.rmtree(other) if other.is_dir() else other.unlink()

        places = [root / place for folder in folders for place in table[folder]]
        files = {file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))}
        with ThreadPoolExecutor(jobs) as pool:
            parts = list(pool.map(self._measure, sorted(files)))
        self.data = [data for _, data in parts]
        seconds = {test: time for part, _ in parts for test, time in part.items()}
        self.seconds = {test: time for test, time in seconds.items() if time is not None}
        self.failing = sorted(seconds.keys() - self.seconds.keys())
        self._lines: dict[str, dict[int, set[str]]] = {}

    def _measure(self, file: Path) -> tuple[dict[str, float | None], CoverageData]:
        """The seconds of the tests of a file, None of one that fails; and which lines each ran."""
        record = self.cache / f"{digest(self.root, [file])}.coverage"
        seconds = record.with_suffix(".seconds")
        if not seconds.exists():
            record.unlink(missing_ok=True)  # of a measurement that was cut off
            self._run([f"--record={record}", *(f"--record-source={top}" for top in self.sources),
                       file.relative_to(self.root).as_posix()])
        data = CoverageData(str(record))
        data.read()
        return json.loads(seconds.read_text()), data

    def on_lines(self, file: str, first: int, last: int) -> set[str]:
        """The tests that run any of these lines, wherever the copy was that they ran in."""
        if file not in self._lines:
            lines: dict[int, set[str]] = {}
            for data in self.data:
                for path in data.measured_files():
                    if path.endswith(f"/{file}"):
                        for line, tests in data.contexts_by_lineno(path).items():
                            lines.setdefault(line, set()).update(self.seconds.keys() & set(tests))
            self._lines[file] = lines  # when it is whole: other threads read it
        return {test for line in range(first, last + 1) for test in self._lines[file].get(line, ())}

    def batches(self, file: str, first: int, last: int) -> list[list[str]]:
        """The tests that meet a mutant of these lines: those that run them, quick ones first, and stand-ins.

        The quick ones of the mutant's own folder are a batch before those of others: each file takes time to load.
        """
        places = next(places for folder in folders_of(file, self.table)
                      if (places := [place for place in self.table[folder] if (self.root / place).exists()]))
        near = {test for test in self.seconds if test.startswith(tuple(f"{place}{end}" for place in places
                                                                       for end in ("/", "::")))}
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
