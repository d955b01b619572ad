"""Mutants meet their tests: each is written into a copy of the project, where pytest must fail."""

from __future__ import annotations

import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.mutation.measure import Measured, Table, folders_of
from tests.mutation.mutators import Mutant, Source

HERE = Path(__file__).parents[2]
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", flags=re.MULTILINE)


def draw(root: Path, paths: Iterable[str], count: int, seed: int) -> list[Mutant]:
    """`count` mutants of the files that match, drawn at random from all places where there is one."""
    files = sorted({file for pattern in paths for file in root.glob(pattern) if file.suffix == ".py"})
    sources = [Source(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")) for file in files]
    places = [(source, site) for source in sources for site in range(len(source.sites))]
    random.Random(seed).shuffle(places)
    drawn: dict[tuple[str, str], Mutant] = {}
    for source, site in places:
        if len(drawn) == count:
            break
        if mutant := source.mutant(site):
            drawn.setdefault((mutant.file, mutant.source), mutant)
    return list(drawn.values())


class Copy:
    """A copy of the files that git knows or does not ignore, to be mutated and tested in.

    Compiled modules are told from their source by its content, since a mutant may have the size and, to the second, the
    time of the file that it replaces.
    """

    def __init__(self, root: Path, target: Path) -> None:
        self.root = target
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                                capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, target / name)

    @contextmanager
    def with_mutant(self, mutant: Mutant) -> Iterator[None]:
        path = self.root / mutant.file
        original = path.read_bytes()
        path.write_text(mutant.source, encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(original)

    def pytest(self, arguments: Sequence[str], seconds: float | None = None) -> tuple[int | None, str]:
        """Runs pytest in the copy: its status, None if it did not end in time, and its output."""
        paths = [str(self.root), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]  # HERE for the plugin
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0",
                       "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutation.pytest_plugin",
                   f"--rootdir={self.root}", *arguments]
        process = subprocess.Popen(command, cwd=self.root, env=environment, stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # and what it has started
                process.communicate()

    def run_tests(self, tests: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Runs these tests, in this order, up to the first failure."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as chosen:
            chosen.write("\n".join(tests))
            chosen.flush()
            files = dict.fromkeys(test.partition("::")[0] for test in tests)
            return self.pytest(["-x", "--tb=no", f"--chosen={chosen.name}", *files], seconds)


class Campaign:
    """Copies of a project, and the tests that were measured in them.

    Args:
        root: the project.
        table: the folders of its source, and the tests of each.
        cache: the folder for what is measured.
        jobs: copies, and processes at a time.
    """

    def __init__(self, root: Path, table: Table, cache: Path, jobs: int = 2) -> None:
        self.root, self.table, self.cache, self.jobs = root, table, cache, jobs
        self.free: queue.SimpleQueue[Copy] = queue.SimpleQueue()

    def run(self, mutants: Sequence[Mutant]) -> Iterator[dict[str, Any]]:
        """What becomes of each mutant, as it comes: killed, timeout (one that hangs is noticed, too) or survived."""
        with ExitStack() as stack:
            for _ in range(self.jobs):
                copy = Copy(self.root, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutation-"))))
                subprocess.run([sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash",
                                *{mutant.file.partition("/")[0] for mutant in mutants}], cwd=copy.root, check=True)
                self.free.put(copy)
            folders = {folder for mutant in mutants for folder in folders_of(mutant.file, self.table)}
            self.measured = Measured(self.root, self.table, self.cache, folders, self._measure, self.jobs)
            self._check(mutants[0])
            pool = stack.enter_context(ThreadPoolExecutor(self.jobs))
            stack.callback(pool.shutdown, cancel_futures=True)
            for done in as_completed([pool.submit(self._meet, mutant) for mutant in mutants]):
                yield done.result()

    @contextmanager
    def _copy(self) -> Iterator[Copy]:
        copy = self.free.get()
        try:
            yield copy
        finally:
            self.free.put(copy)

    def _measure(self, arguments: Sequence[str]) -> None:
        with self._copy() as copy:
            status, output = copy.pytest(["--tb=no", *arguments])
        if status not in (0, 1, 5):  # 1: a test failed, and is left out; 5: a file without tests
            raise RuntimeError(f"the tests could not be measured:\n{output[-2000:]}")

    def _check(self, mutant: Mutant) -> None:
        """RuntimeError if tests fail without a mutant: then nothing that follows would mean anything."""
        with self._copy() as copy:
            for batch in self.measured.batches(mutant.file, *mutant.lines)[:1]:
                status, output = copy.run_tests(batch, self._limit(batch))
                if status != 0:
                    raise RuntimeError(f"tests fail without a mutant:\n{output[-2000:]}")

    def _limit(self, tests: Sequence[str]) -> float:
        return 60 + 5 * sum(self.measured.seconds[test] for test in tests)

    def _meet(self, mutant: Mutant) -> dict[str, Any]:
        batches = self.measured.batches(mutant.file, *mutant.lines)
        begun, verdict, test = time.monotonic(), "survived", ""
        with self._copy() as copy, copy.with_mutant(mutant):
            for batch in batches:
                status, output = copy.run_tests(batch, self._limit(batch))
                if status not in (0, 5):  # 5: the mutant has other cases of these tests
                    failed = FAILED.search(output)
                    verdict, test = "timeout" if status is None else "killed", failed[1] if failed else ""
                    break
        return {"file": mutant.file, "line": mutant.lines[0], "mutator": mutant.mutator, "status": verdict,
                "test": test, "tests": sum(map(len, batches)), "seconds": round(time.monotonic() - begun, 1),
                "was": mutant.changed("-"), "becomes": mutant.changed("+"), "diff": mutant.diff}
