"""The workloads of the benchmarks, and the peers: they start from the same weights and compute the same losses."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import minigrad as mg

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NEEDS = {"torch-transformer": "torch", "torch-sdpa": "torch", "torch-compile": "torch", "jax": "jax",
         "autograd": "autograd", "minigrad-jit": "numba"}


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
    installed = [peer for peer in ("torch-transformer", "torch-sdpa", "jax", "autograd")
                 if importlib.util.find_spec(NEEDS[peer])]
    answers = {peer: train(peer, workload, weights) for peer in ("minigrad", *installed)}
    losses = answers["minigrad"]["losses"]
    assert len(losses) == (1 if workload.dropout else 1 + load("train_process").CHECKED)
    contest.check_losses(workload, answers)
    assert 0 < answers["minigrad"]["memory"] < 200
    model = load("peers.minigrad_numpy").model_of(workload, str(weights)).eval()
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
