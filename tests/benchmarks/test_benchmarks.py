"""The benchmarks measure what they say, and docs/performance.md shows what they wrote."""

import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


# --------------------------------------------------------------------------- pairs


def test_programs_alternate_and_the_first_round_does_not_count(load, tmp_path):
    log = tmp_path / "log"
    code = "import sys; open(sys.argv[1], 'a').write(sys.argv[2]); print('measured'); print('{\"t\": 1.0}')"
    programs = {name: [sys.executable, "-c", code, str(log), name] for name in "AB"}
    rounds = load("paired").alternate(programs, 2)
    assert log.read_text() == "ABABAB"
    assert rounds == [{"A": {"t": 1.0}, "B": {"t": 1.0}}] * 2


def test_ratios_are_theirs_over_ours_within_a_pair(load):
    rounds = [{"A": {"t": a, "only": 1.0}, "B": {"t": b}} for a, b in [(1, 2), (10, 20), (4, 4)]]
    assert load("paired").compare(rounds, "A", "B") == {"t": {
        "A": {"median": 4, "low": 2.5, "high": 7}, "B": {"median": 4, "low": 3, "high": 12},
        "ratio": {"median": 2, "low": 1.5, "high": 2}}}


def test_one_number_has_a_spread_too(load):
    assert load("paired").spread([2.5]) == {"median": 2.5, "low": 2.5, "high": 2.5}


def test_of_several_programs_the_fastest_counts_in_each_round(load):
    rounds = [{"A": {"t": 3.0}, "B": {"t": 4.0}}, {"A": {"t": 6.0}, "B": {"t": 5.0}}]
    assert [pair["best"] for pair in load("paired").fastest(rounds, "AB", "best")] == [{"t": 3.0}, {"t": 5.0}]


def test_a_program_that_fails_is_an_error(load):
    with pytest.raises(Exception, match="exit status 3"):
        load("paired").measure([sys.executable, "-c", "raise SystemExit(3)"], {})


@pytest.mark.parametrize("arguments", [
    ["training.py", "--peers", "autograd", "--sizes", "toy", "--dry"], ["overhead.py", "--peer", "autograd", "--dry"],
], ids=lambda arguments: arguments[0])
def test_without_the_peer_a_benchmark_says_how_to_install_it(arguments):
    code = ("import runpy, sys, importlib.util as u; find = u.find_spec; "
            "u.find_spec = lambda name, *more: None if name == 'autograd' else find(name, *more); "
            "sys.argv = sys.argv[1:]; sys.path.insert(0, 'benchmarks'); "
            "runpy.run_path('benchmarks/' + sys.argv[0], run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False,
                          cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr == ("to be measured against, but not installed: autograd; in the project's folder:  "
                           "pip install -e '.[bench]'\n")


def test_what_is_measured_imports_this_checkout(load):
    code = "import json, minigrad; print(json.dumps({minigrad.__file__: 0}))"
    (file,) = load("paired").measure([sys.executable, "-c", code], {})
    assert Path(file).is_relative_to(ROOT)


def test_the_threads_of_a_measured_process_are_those_that_are_asked_for(load, monkeypatch):
    paired = load("paired")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    assert "OPENBLAS_NUM_THREADS" not in paired.environment()
    assert paired.environment(paired.ONE_THREAD)["OPENBLAS_NUM_THREADS"] == "1"


# --------------------------------------------------------------------------- turns

TAKER = """
import sys, turns
log = open(sys.argv[1], "ab", buffering=0)
name = sys.argv[2].encode()
answers = turns.Answers()
print("what a library says")
log.write(b"(" + name)
answers.give({"losses": [1.5]})
answers.serve(lambda: log.write(name))
log.write(b")")
"""


def test_processes_take_turns(load, tmp_path, monkeypatch):
    turns = load("turns")
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS))
    log = tmp_path / "log"
    programs = {name: [sys.executable, "-c", TAKER, str(log), name] for name in "AB"}
    with turns.started(programs) as processes:
        assert [process.ready for process in processes.values()] == [{"losses": [1.5]}] * 2
        rounds = turns.take(processes, rounds=3, seconds=0.0)
    assert log.read_text() == "(A(B" + 3 * (turns.LEAST * "A" + turns.LEAST * "B") + "))"
    assert [list(pair) for pair in rounds] == [["A", "B"]] * 3
    assert all(pair[name]["ms"] > 0 for pair in rounds for name in pair)


def test_a_process_that_ends_before_it_is_ready_is_an_error(load):
    turns, programs = load("turns"), {"ill": [sys.executable, "-c", "raise SystemExit(4)"]}
    with pytest.raises(RuntimeError, match=r"^ill ended with status 4$"), turns.started(programs):
        pass


def test_an_optional_program_that_cannot_start_is_left_out(load, capfd):
    turns, programs = load("turns"), {"ill": [sys.executable, "-c", "raise SystemExit(4)"]}
    with turns.started(programs, optional=["ill"]) as processes:
        assert processes == {}
    assert capfd.readouterr().err == "left out: ill ended with status 4\n"


def test_the_mean_time_of_a_lap(load):
    turns = load("turns")
    given, laps = [], 0
    for _ in turns.laps([0.05, 0.0], lambda *seconds: given.append(seconds)):
        time.sleep(0.01)
        laps += 1
    assert 2 <= laps <= 6 + turns.LEAST
    assert len(given) == 2
    for taken, worked in given:
        assert taken >= 0.01
        assert worked < 0.01  # sleep is no work


# --------------------------------------------------------------------------- resident memory


PEAK = """
import numpy as np, resident
seen = [resident.now()]
block = np.ones(2**25, np.uint8)  # 32 MiB
seen.append(resident.now())
del block
seen.append(resident.peak())
resident.forget_peak()
seen.append(resident.peak())
print(*seen)
"""


def test_the_peak_is_remembered_until_it_is_forgotten():
    """In a process of its own: one that trains keeps what it frees, see `transformer.training.memory`."""
    done = subprocess.run([sys.executable, "-c", PEAK], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    before, with_block, peak, forgotten = map(float, done.stdout.split())
    assert with_block - before > 30
    assert peak - before > 30
    if Path("/proc/self/clear_refs").exists():
        assert forgotten - before < 16


# --------------------------------------------------------------------------- engine overhead


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


def test_one_library_is_measured(load, monkeypatch):
    overhead = load("overhead")
    monkeypatch.setattr(overhead, "BLOCKS", 1)
    numbers = overhead.measured("minigrad", seconds=1e-4)
    assert list(numbers) == list(overhead.programs(mg))
    assert all(math.isfinite(number) and number > 0 for number in numbers.values())


# --------------------------------------------------------------------------- two checkouts


@pytest.fixture
def old(tmp_path):
    """The folder of another checkout, with the packages of this one."""
    folder = tmp_path.resolve() / "old"
    folder.mkdir()
    for package in ("minigrad", "transformer"):
        (folder / package).symlink_to(ROOT / package)
    return folder


def test_two_checkouts_are_measured_and_compute_the_same(old, tmp_path):
    """Each process imports its own checkout, also where the command is given in the folder of the other."""
    done = subprocess.run([sys.executable, str(BENCHMARKS / "old_against_new.py"), str(old), "--dry", "--out",
                           str(tmp_path / "out.json")], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert found["files"] == {"old": str(old / "minigrad/__init__.py"), "new": str(ROOT / "minigrad/__init__.py")}
    assert {title.replace(",", " ").split()[0] for title in found["results"]} == {
        "training", "greedy", "overhead", "import", "memory"}
    for title, row in found["results"].items():
        assert f"| {title} | " in done.stdout
        if title != "overhead, median":  # of several ratios
            assert row["ratio"]["median"] == pytest.approx(row["new"]["median"] / row["old"]["median"], rel=1e-3), title
    assert len(found["checks"]) == 6
    assert set(found["checks"].values()) == {"equal bits"}


def test_a_process_that_imports_another_checkout_is_refused(load, old):
    """What the driver relies on, should a package of the other checkout be found first."""
    turns = load("turns")
    command = [sys.executable, str(BENCHMARKS / "checkout_process.py"), "overhead", "--checkout", str(old)]
    with pytest.raises(RuntimeError, match=r"^the old ended with status 1$"):
        turns.Process("the old", command, {"PYTHONPATH": str(ROOT)})


def test_what_two_checkouts_compute_is_compared_by_bits(load):
    difference = load("old_against_new").difference
    one = {"losses": [2.0, 1.5], "weights": "abc"}
    assert difference(one, dict(one)) == "equal bits"
    assert "2.22e-16" in difference(one, one | {"losses": [2.0, 1.5 + 2**-52]})
    assert "the weights" in difference(one, one | {"weights": "abd"})
    assert "1 of 2" in difference({"translations": [[4], [5]]}, {"translations": [[4], [6]]})
    assert difference({"file": "a"}, {"file": "b"}) is None


# --------------------------------------------------------------------------- the page


def test_the_page_shows_every_result(load):
    text = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    places = set(re.findall(r"<!-- (\w+) -->", text))
    names = {path.stem for path in (BENCHMARKS / "results").glob("*.json")}
    assert names < places
    page = load("page")
    for name in names:
        saved = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text(encoding="utf-8"))
        shown = f"<!-- {name} -->\n{page.table(saved['results'], saved['unit'])}\n\n{page.circumstances(saved)}\n"
        assert shown in text, name
        assert {"processor", "cores", "load", "python", "numpy"} <= saved["machine"].keys()


def test_the_page_shows_the_figures_to_reach(load):
    text = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    assert f"<!-- figures -->\n{load('figures').table()}\n" in text


REPORT = {"what": "time", "unit": "ms", "rounds": 2,
          "machine": {"processor": "Abacus", "cores": 2, "load": 0.5, "system": "Wood", "python": "3.14.1",
                      "them": "7.8"}}


def one_row(load, ours, theirs):
    return load("paired").compare([{"us": {"t": ours}, "them": {"t": theirs}}] * 2, "us", "them")["t"]


@pytest.fixture
def page(load, tmp_path, monkeypatch):
    page = load("page")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    page.PAGE.write_text("A:\n\n<!-- a -->\n| old |\n|---|\n\nB:\n\n<!-- b -->\n\nEnd\n", encoding="utf-8")
    return page


def test_a_result_is_put_in_its_place(load, page):
    report = {**REPORT, "results": {"t": one_row(load, 2.0, 4096.0)}}
    for name in ("a", "b", "a"):
        page.publish(name, report)
    table = page.table(report["results"], "ms")
    assert "| | us (ms) | them (ms) | them / us | quartiles |" in table
    assert "| t | 2.0 | 4,096 | 2048.00 | 2048.00 – 2048.00 |" in table
    table += "\n\n*2 pairs; Abacus, 2 cores, load 0.5 at the end; Wood, Python 3.14.1, them 7.8.*"
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == f"A:\n\n<!-- a -->\n{table}\n\nB:\n\n<!-- b -->\n{table}\n\nEnd\n"
    assert json.loads((page.RESULTS / "a.json").read_text(encoding="utf-8")) == report
    with pytest.raises(ValueError, match="<!-- c --> expected, found 0"):
        page.publish("c", report)
    assert not (page.RESULTS / "c.json").exists()


def test_nothing_is_written_when_it_is_not_to_be_kept(load, page):
    before = page.PAGE.read_text(encoding="utf-8")
    page.publish("a", {**REPORT, "results": {"t": one_row(load, 2.0, 4.0)}}, keep=False)
    assert page.PAGE.read_text(encoding="utf-8") == before
    assert not page.RESULTS.exists()


def test_a_part_that_is_measured_again_replaces_its_rows(load, page):
    old, new = one_row(load, 2.0, 4.0), one_row(load, 2.0, 6.0)
    page.publish("a", {**REPORT, "results": {"x": old, "y": old}})
    page.publish("a", {**REPORT, "results": {"y": new}, "machine": {**REPORT["machine"], "load": 0.1}})
    saved = json.loads((page.RESULTS / "a.json").read_text(encoding="utf-8"))
    assert saved["results"] == {"x": old, "y": new}
    assert saved["machine"]["load"] == 0.1
    page.publish("a", {**REPORT, "results": {"y": old}, "machine": {**REPORT["machine"], "them": "7.9"}})
    saved = json.loads((page.RESULTS / "a.json").read_text(encoding="utf-8"))
    assert saved["results"] == {"y": old}  # another version: the old rows are of something else


def test_figures_know_what_is_reached(load, page):
    figures = load("figures")
    page.RESULTS.mkdir()
    (page.RESULTS / "decoding.json").write_text(json.dumps({"results": {"greedy": one_row(load, 2.0, 4.0)}}))
    assert figures.cell(figures.Figure("greedy", "decoding", figures.ratio("greedy"), 2.0, 2.0), "", 2.0) == "2.00"
    assert figures.cell(figures.Figure("greedy", "decoding", figures.ratio("greedy"), 2.1, 2.0), "", 2.1) == (
        "2.00 (not reached)")
    assert figures.cell(figures.Figure("greedy", "decoding", figures.ratio("beam"), 2.0, 2.0), "", 2.0) == "–"
    assert figures.cell(figures.Figure("greedy", "decoding", figures.ratio("greedy"), 2.0, 2.0), "_jit", 2.0) == "–"
    rows = {"first": {"ratio": {"median": 0.5}}, "last": {"ratio": {"median": 1.5}}}
    assert figures.growth("first", "last")(rows) == 3
    assert figures.middle(rows) == 1


# --------------------------------------------------------------------------- NumPy in two ways


def test_both_ways_of_writing_it_are_the_same(load):
    """But for random masks; and queries, keys and values come as three arrays or as one."""
    host = load("host")
    for title, chosen, other in host.cases():
        if title.startswith("dropout mask"):
            assert chosen().mean() == pytest.approx(0.9, abs=0.01) == other().mean()
        elif title.startswith("exponentials"):
            assert chosen().shape == other().shape
        else:
            one = chosen()
            one = np.concatenate(one, axis=1) if isinstance(one, list) else one
            np.testing.assert_allclose(one, other(), rtol=1e-4, atol=1e-3)
