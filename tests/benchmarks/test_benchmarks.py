"""The benchmarks measure what they say: the peers start from the same weights and compute the same losses."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import minigrad as mg

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
NEEDS = {"torch-transformer": "torch", "torch-sdpa": "torch", "jax": "jax", "autograd": "autograd"}


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


@pytest.fixture
def tiny(load):
    """A workload of a few thousand parameters, with dropout or padding as asked."""
    def make(**changes):
        workload = load("workloads").Workload("tiny", vocabulary=11, d_model=16, heads=2, d_ff=24, layers=1, batch=6,
                                              length=9)
        return replace(workload, **changes)
    return make


def process(*arguments):
    """A measured process with nothing on its input: its first answer."""
    done = subprocess.run([sys.executable, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, cwd=BENCHMARKS.parent)
    assert done.returncode == 0, done.stderr
    (answer,) = done.stdout.splitlines()
    return json.loads(answer)


def train(peer, workload, weights):
    return process(BENCHMARKS / "train_process.py", "--peer", peer, "--workload", workload.to_json(),
                   "--weights", weights)


# --------------------------------------------------------------------------- workloads


# --------------------------------------------------------------------------- the floor


# --------------------------------------------------------------------------- training


@pytest.mark.parametrize("changes", [{"padded": True}, {"dropout": 0.1, "padded": True}], ids=str)
def test_all_peers_have_the_losses_of_minigrad(load, tiny, tmp_path, changes):
    contest, workload, weights = load("contest"), tiny(**changes), tmp_path / "start.safetensors"
    workload.write_weights(weights)
    installed = [peer for peer, package in NEEDS.items() if importlib.util.find_spec(package)]
    answers = {peer: train(peer, workload, weights) for peer in ("minigrad", *installed)}
    losses = answers["minigrad"]["losses"]
    assert len(losses) == (1 if workload.dropout else 1 + load("train_process").CHECKED)
    contest.check_losses(workload, answers)
    assert 0 < answers["minigrad"]["memory"] < 200
    model = load("peers.minigrad_training").model_of(workload, str(weights)).eval()
    with mg.no_grad():
        assert losses[0] == pytest.approx(model.loss(*workload.batches(1)[0]).item(), rel=1e-6)


def test_other_losses_are_not_published(load, tiny):
    contest, answers = load("contest"), {"minigrad": {"losses": [2.0, 1.0]}, "floor": {"losses": []}}
    contest.check_losses(tiny(), answers | {"jax": {"losses": [2.0, 1.00009]}})
    with pytest.raises(SystemExit, match=r"jax has other losses than minigrad; nothing is published"):
        contest.check_losses(tiny(), answers | {"jax": {"losses": [2.0, 1.0002]}})


# --------------------------------------------------------------------------- decoding


def test_decoding_finds_the_same_translations(load, tiny, tmp_path):
    decoding, weights = load("decoding"), tmp_path / "start.safetensors"
    workload = tiny(padded=True, vocabulary=300)
    workload.write_weights(weights, endless=True)
    installed = ["PyTorch"] if importlib.util.find_spec("torch") else []
    answers = {name: process(BENCHMARKS / "decoding.py", "--measure", name, "--beam", 4, "--tokens", 8,
                             "--workload", workload.to_json(), "--weights", weights)
               for name in ("minigrad", *installed)}
    translations = answers["minigrad"]["translations"]
    assert [len(ids) for ids in translations] == [8] * workload.batch
    assert len({tuple(ids) for ids in translations}) > 1
    decoding.check_translations(answers)


def test_other_translations_are_not_published(load):
    answers = {"minigrad": {"translations": [[4, 5], [6, 7]]}, "PyTorch": {"translations": [[4, 5], [6, 8]]}}
    with pytest.raises(SystemExit, match=r"PyTorch translates 1 of 2 .* sentence 1 among them; nothing is published"):
        load("decoding").check_translations(answers)
