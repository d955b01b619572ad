"""The benchmarks measure what they say, and docs/performance.md shows what they wrote."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


# --------------------------------------------------------------------------- resident memory


# --------------------------------------------------------------------------- engine overhead


# --------------------------------------------------------------------------- two checkouts


@pytest.fixture
def old(tmp_path):
    """The folder of another checkout, with the packages of this one."""
    folder = tmp_path.resolve() / "old"
    folder.mkdir()
    for package in ("minigrad", "transformer"):
        (folder / package).symlink_to(ROOT / package)
    return folder


@pytest.mark.slow
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


def test_what_two_checkouts_compute_is_compared_by_bits(load):
    difference = load("old_against_new").difference
    one = {"losses": [2.0, 1.5], "weights": "abc"}
    assert difference(one, dict(one)) == "equal bits"
    assert "2.22e-16" in difference(one, one | {"losses": [2.0, 1.5 + 2**-52]})
    assert "the weights" in difference(one, one | {"weights": "abd"})
    assert "1 of 2" in difference({"translations": [[4], [5]]}, {"translations": [[4], [6]]})
    assert difference({"file": "a"}, {"file": "b"}) is None


# --------------------------------------------------------------------------- the page


REPORT = {"what": "time", "unit": "ms", "rounds": 2,
          "machine": {"processor": "Abacus", "cores": 2, "load": 0.5, "system": "Wood", "python": "3.14.1",
                      "them": "7.8"}}


def test_a_result_is_put_in_its_place_and_replaces_what_was_there(load, tmp_path, monkeypatch):
    page = load("page")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    page.PAGE.write_text("A:\n\n<!-- a -->\n| old |\n|---|\n\nB:\n\n<!-- b -->\n\nEnd\n", encoding="utf-8")
    row = load("paired").compare([{"us": {"t": 2.0}, "them": {"t": 4096.0}}] * 2, "us", "them")["t"]
    report = {**REPORT, "results": {"t": row}}
    page.publish("a", report, keep=False)
    assert not page.RESULTS.exists()
    for name in ("a", "b", "a"):
        page.publish(name, report)
    written = page.PAGE.read_text(encoding="utf-8")
    assert written.count("| t | 2.0 | 4,096 | 2048.00 | 2048.00 – 2048.00 |") == 2
    assert "old" not in written
    assert json.loads((page.RESULTS / "a.json").read_text(encoding="utf-8")) == report
    page.publish("a", {**REPORT, "results": {"x": row}})  # a part that is measured later joins the others
    assert json.loads((page.RESULTS / "a.json").read_text(encoding="utf-8"))["results"].keys() == {"t", "x"}
    with pytest.raises(ValueError, match="<!-- c -->"):
        page.publish("c", report)


# --------------------------------------------------------------------------- NumPy in two ways
