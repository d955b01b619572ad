"""What pytest does within a campaign: runs chosen tests in a given order, or records which lines each test runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chosen", type=Path, help="a file with the ids of the tests to run, in this order, one a line")
    parser.addoption("--record", type=Path, help="where to write coverage, and beside it, in .seconds, what tests take")
    parser.addoption("--record-source", action="append", help="a folder whose lines are recorded")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("record"):
        config.pluginmanager.register(Recorder(config.getoption("record"), config.getoption("record_source")))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("chosen"):
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in config.getoption("chosen").read_text().splitlines() if name in found]


class Recorder:
    """Records the lines that each test runs, its fixtures included, and the seconds that it takes; None if it fails."""

    def __init__(self, path: Path, sources: list[str]) -> None:
        import coverage

        self.seconds: dict[str, float | None] = {}
        self.path = path
        self.coverage = coverage.Coverage(data_file=str(path), source=sources, config_file=False, messages=False)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        so_far = self.seconds.setdefault(report.nodeid, 0.0)
        self.seconds[report.nodeid] = None if report.failed or so_far is None else so_far + report.duration

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        self.path.with_suffix(".seconds").write_text(json.dumps(self.seconds))
