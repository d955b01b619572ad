"""The benchmarks measure what they say, and docs/performance.md shows what they wrote."""

import importlib.util
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    """A module of benchmarks/ by its name, imported as the scripts there import each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def by_name(name):
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return by_name


def printing(numbers):
    return [sys.executable, "-c", f"print('measured'); print('{json.dumps(numbers)}')"]


def test_programs_alternate_and_the_first_round_does_not_count(load, tmp_path):
    log = tmp_path / "log"
    code = "import sys; open(sys.argv[1], 'a').write(sys.argv[2]); print('{\"t\": 1.0}')"
    programs = {name: [sys.executable, "-c", code, str(log), name] for name in "AB"}
    rounds = load("paired").alternate(programs, 2)
    assert log.read_text() == "ABABAB"
    assert rounds == [{"A": {"t": 1.0}, "B": {"t": 1.0}}] * 2


def test_ratios_are_taken_within_a_pair(load):
    paired = load("paired")
    rounds = [{"A": {"t": a, "only": 1.0}, "B": {"t": b}} for a, b in [(1, 2), (10, 20), (4, 4)]]
    assert paired.compare(rounds, "A", "B") == {"t": {
        "A": {"median": 4, "low": 2.5, "high": 7}, "B": {"median": 4, "low": 3, "high": 12},
        "ratio": {"median": 0.5, "low": 0.5, "high": 0.75}}}


def test_a_program_that_fails_is_an_error(load):
    with pytest.raises(Exception, match="exit status 3"):
        load("paired").measure([sys.executable, "-c", "raise SystemExit(3)"], {})


def test_what_is_measured_imports_this_checkout(load):
    code = "import json, minigrad; print(json.dumps({minigrad.__file__: 0}))"
    (file,) = load("paired").measure([sys.executable, "-c", code], {})
    assert Path(file).is_relative_to(ROOT)


def test_overhead_programs(load):
    """Each has as many operations as its number says, and no value or gradient overflows or vanishes."""
    overhead = load("overhead")
    functions, runner = overhead.minigrad()
    for name, (program, operations) in overhead.programs(functions).items():
        x, y = (mg.Tensor(array, requires_grad=True) for array in (overhead.X, overhead.Y))
        out = program(x, y)
        assert count_nodes(out) == operations, name
        out.backward(mg.ones((4, 4)))
        for array in (out.data, x.grad.data):
            assert np.isfinite(array).all(), name
            assert np.abs(array).max() > np.finfo(np.float32).tiny, name
        runner(program)()


def count_nodes(out):
    seen, stack = set(), [out._node]
    while stack:
        node = stack.pop()
        if not isinstance(node, mg.Tensor) and id(node) not in seen:
            seen.add(id(node))
            stack.extend(node.parents)
    return len(seen)


def test_one_library_is_measured(load):
    overhead = load("overhead")
    overhead.BLOCKS, overhead.SECONDS = 1, 1e-4
    numbers = overhead.measured("minigrad")
    assert list(numbers) == list(overhead.programs(mg))
    assert all(math.isfinite(number) and number > 0 for number in numbers.values())


def test_the_page_shows_every_result(load):
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    names = re.findall(r"<!-- (\w+) -->", page)
    assert sorted(names) == sorted(path.stem for path in (BENCHMARKS / "results").glob("*.json"))
    for name in names:
        saved = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text(encoding="utf-8"))
        paired = load("paired")
        assert f"{paired.table(saved['results'], saved['unit'])}\n\n{paired.circumstances(saved)}\n" in page
        assert saved["rounds"] >= 25
        assert {"processor", "cores", "load", "python", "numpy"} <= saved["machine"].keys()


def test_a_result_is_put_in_its_place(load, tmp_path, monkeypatch):
    paired = load("paired")
    page = tmp_path / "page.md"
    page.write_text("A:\n\n<!-- a -->\n| old |\n|---|\n\nB:\n\n<!-- b -->\n\nEnd\n", encoding="utf-8")
    monkeypatch.setattr(paired, "PAGE", page)
    monkeypatch.setattr(paired, "RESULTS", tmp_path / "results")
    rounds = [{"us": {"t": 2.0}, "them": {"t": 4.0}}] * 2
    where = {"processor": "Abacus", "cores": 2, "load": 0.5, "system": "Wood", "python": "3.14.1", "them": "7.8"}
    report = {"unit": "ms", "rounds": 2, "machine": where, "results": paired.compare(rounds, "us", "them")}
    for name in ("a", "b", "a"):
        paired.publish(name, report)
    table = paired.table(report["results"], "ms")
    assert "| t | 2.0 | 4.0 | 0.50 | 0.50 – 0.50 |" in table
    table += "\n\n*2 pairs; Abacus, 2 cores, load 0.5 at the end; Wood, Python 3.14.1, them 7.8.*"
    assert page.read_text(encoding="utf-8") == f"A:\n\n<!-- a -->\n{table}\n\nB:\n\n<!-- b -->\n{table}\n\nEnd\n"
    assert json.loads((tmp_path / "results/a.json").read_text(encoding="utf-8")) == report
    with pytest.raises(ValueError, match="<!-- c --> expected, found 0"):
        paired.publish("c", report)
