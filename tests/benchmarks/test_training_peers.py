"""The workloads of the benchmarks, and the peers: they start from the same weights and compute the same losses."""

import argparse
import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
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


def test_the_workloads_that_are_measured(load):
    workloads = load("workloads")
    titles = [workload.title for workload in workloads.variations(workloads.SIZES)]
    assert len(set(titles)) == len(titles) == 16
    assert titles[:5] == ["toy, dropout 0", "toy, dropout 0, a third padding", "toy, dropout 0.1",
                          "toy, dropout 0.1, a third padding", "small, dropout 0"]
    for workload in workloads.SIZES.values():
        assert workloads.Workload.from_json(workload.to_json()) == workload


@pytest.mark.parametrize("name", ["toy", "small", "mid", "base"])
def test_a_third_of_the_tokens_is_padding_or_none(load, name):
    workloads = load("workloads")
    for workload in workloads.variations([name], [0.0]):
        (source, labels), (other, _) = workload.batches(2)
        assert source.shape == labels.shape == (workload.batch, workload.length)
        assert not np.array_equal(source, other)
        assert np.array_equal(source, workload.batches(1)[0][0])
        for ids in (source, labels):
            lengths = (ids != workloads.PAD).sum(axis=1)
            share = 1 - lengths.mean() / workload.length
            assert abs(share - (1 / 3 if workload.padded else 0)) < 0.02
            assert lengths.max() == workload.length
            assert (ids[np.arange(workload.batch), lengths - 1] == workloads.EOS).all()
            assert ((ids == workloads.PAD) == (np.arange(workload.length) >= lengths[:, None])).all()
            assert ids.max() < workload.vocabulary


def test_the_decoder_reads_what_came_before(load):
    labels = np.array([[5, 6, 2, 0]])
    assert load("workloads").shifted(labels).tolist() == [[1, 5, 6, 2]]


# --------------------------------------------------------------------------- the floor


def test_the_products_of_a_step_are_those_of_the_closed_form(load):
    """6·tokens·weights for all that is a weight matrix, and 12·batch·length²·width for each attention."""
    workloads, floor = load("workloads"), load("peers.gemm_floor")
    for w in workloads.SIZES.values():
        d, tokens = w.d_model, w.batch * w.length
        matrices = w.layers * (4 * d * d + 8 * d * d + 2 * 2 * d * w.d_ff) + d * w.vocabulary
        attentions = 3 * w.layers
        assert floor.operations(w) == 6 * tokens * matrices + 12 * attentions * w.batch * w.length**2 * d


def test_the_products_of_the_floor_are_those_that_the_engine_computes(load, tiny):
    """As many multiplications as a profile of shapes gives: every weight matrix once, forward."""
    workload = tiny()
    weights = [p for name, p in load("peers.minigrad_numpy").Transformer(workload.config()).named_parameters()
               if p.ndim == 2 and "embedding" not in name]
    tokens = workload.batch * workload.length
    linear = sum(2 * tokens * p.size for p in weights)
    floor = load("peers.gemm_floor")
    batched = sum(2 * p.batch * p.rows * p.inner * p.columns for p in floor.products(workload) if p.batch > 1)
    assert floor.operations(workload) == 3 * (linear + batched)


def test_a_product_is_computed_forward_and_backward(load, tiny):
    floor = load("peers.gemm_floor")
    for batch in (1, 3):
        both = floor.run(floor.Product(batch, 4, 5, 6), np.random.default_rng(0))
        both()
        cells = dict(zip(both.__code__.co_freevars, (cell.cell_contents for cell in both.__closure__), strict=True))
        a, b, c = cells["a"], cells["b"], cells["c"]
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)
        np.testing.assert_allclose(cells["da"], c @ b.swapaxes(-1, -2), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(cells["db"], a.swapaxes(-1, -2) @ c, rtol=1e-5, atol=1e-5)
    answer = train("gemm", tiny(), "none")
    assert answer["losses"] == []


# --------------------------------------------------------------------------- training


@pytest.mark.parametrize("changes", [{}, {"padded": True}, {"dropout": 0.1, "padded": True}], ids=str)
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
    if not installed:
        pytest.skip("no peer is installed (pip install -e '.[bench]'): minigrad alone ran")


@pytest.mark.skipif(not hasattr(mg, "jit") or not importlib.util.find_spec("numba"), reason="no compiled kernels")
def test_the_compiled_kernels_have_the_same_losses(load, tiny, tmp_path):
    workload, weights = tiny(padded=True), tmp_path / "start.safetensors"
    workload.write_weights(weights)
    answers = {peer: train(peer, workload, weights) for peer in ("minigrad", "minigrad-jit")}
    load("contest").check_losses(workload, answers)


def test_other_losses_are_not_published(load, tiny):
    contest, answers = load("contest"), {"minigrad": {"losses": [2.0, 1.0]}, "floor": {"losses": []}}
    contest.check_losses(tiny(), answers | {"jax": {"losses": [2.0, 1.00009]}})
    with pytest.raises(SystemExit, match=r"jax has other losses than minigrad; nothing is published"):
        contest.check_losses(tiny(), answers | {"jax": {"losses": [2.0, 1.0002]}})


def test_kernels_that_are_not_there_are_not_measured(load, monkeypatch):
    contest = load("contest")

    def absent():
        raise ImportError("minigrad.jit needs the package 'numba'")

    monkeypatch.setattr("minigrad.kernels.load", absent)
    assert contest.ours(jit=False) == ["minigrad"]
    with pytest.raises(SystemExit, match=r"^--jit: there are no compiled kernels here"):
        contest.ours(jit=True)


def test_every_title_and_peer_exists(load):
    contest, peers = load("contest"), load("peers")
    assert set(contest.SHORT.values()) == contest.OTHERS.keys()
    assert sorted(contest.programs([*contest.OURS, *contest.OTHERS])) == sorted(peers.PEERS)
    for module, _ in peers.PEERS.values():
        assert (BENCHMARKS / "peers" / f"{module}.py").exists()


def test_the_row_of_a_table_has_the_faster_of_both_versions_of_pytorch(load):
    contest = load("contest")
    times = [(1.0, 4.0, 3.0), (1.0, 2.0, 6.0)]
    rounds = [{"minigrad": {"ms": a}, "torch-transformer": {"ms": b}, "torch-sdpa": {"ms": c}} for a, b, c in times]
    row = contest.row(contest.by_title(rounds, ["minigrad", "PyTorch eager"]), "minigrad", "PyTorch eager")
    assert row["ratio"] == {"median": 2.5, "low": 2.25, "high": 2.75}
    assert row["torch-transformer"]["median"] == 3
    assert row["torch-sdpa"]["median"] == 4.5


def test_a_workload_is_trained_in_turns(load, tiny, monkeypatch):
    """The driver's way from a workload to rounds, with the programs that need no peer installed."""
    contest = load("contest")
    monkeypatch.setattr(contest.paired, "confine", lambda count: None)  # for a process that is used up afterwards
    options = argparse.Namespace(rounds=2, seconds=0.0, threads=2)
    rounds = contest.train(tiny(), ["minigrad", "GEMM floor"], options)
    row = contest.row(rounds, "minigrad", "GEMM floor")
    assert len(rounds) == 2
    assert 0 < row["GEMM floor"]["median"] < row["minigrad"]["median"]


# --------------------------------------------------------------------------- decoding


@pytest.mark.parametrize("beam", [1, 4])
def test_decoding_finds_the_same_translations(load, tiny, tmp_path, beam):
    decoding, weights = load("decoding"), tmp_path / "start.safetensors"
    workload = tiny(padded=True, vocabulary=300)
    workload.write_weights(weights, endless=True)
    installed = ["PyTorch"] if importlib.util.find_spec("torch") else []
    answers = {name: process(BENCHMARKS / "decoding.py", "--measure", name, "--beam", beam, "--tokens", 8,
                             "--workload", workload.to_json(), "--weights", weights)
               for name in ("minigrad", *installed)}
    translations = answers["minigrad"]["translations"]
    assert [len(ids) for ids in translations] == [8] * workload.batch
    assert len({tuple(ids) for ids in translations}) > 1
    decoding.check_translations(answers)
    if not installed:
        pytest.skip("torch is not installed: minigrad alone ran")


def test_other_translations_are_not_published(load):
    answers = {"minigrad": {"translations": [[4, 5], [6, 7]]}, "PyTorch": {"translations": [[4, 5], [6, 8]]}}
    with pytest.raises(SystemExit, match=r"PyTorch translates 1 of 2 .* sentence 1 among them; nothing is published"):
        load("decoding").check_translations(answers)
