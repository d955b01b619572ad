"""Ranks, threads and PyTorch's processes are measured at the same step, and more hosts follow from a model of it."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.distributed.mpirun import ROOT, command

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture
def scaling(load):
    return load("scaling")


@pytest.fixture
def size(scaling):
    """32 MiB of gradients, in 8 buckets."""
    return scaling.Size(parameters=8 * 2**20, tensors=100, layers=10, flops=1e8, elements=1e5)


@pytest.fixture
def host(scaling):
    return scaling.Host(layer=1e-3, flop=2e-11, element=1e-9, parameter=4e-9, tensor=1e-5, byte=1e-10)


@pytest.fixture
def network(scaling):
    return scaling.Network("slow", latency=1e-4, bandwidth=1e8)


# --------------------------------------------------------------------------- measured


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("mpi4py"), reason="needs mpi4py")
@pytest.mark.skipif(not command(), reason="needs mpirun")
@pytest.mark.parametrize("ddp", [False, pytest.param(True, marks=pytest.mark.skipif(
    not importlib.util.find_spec("torch"), reason="needs PyTorch"))])
def test_all_programs_train_with_the_same_losses(ddp):
    """The script compares them, and ends with an error if they differ; it ends all that it has started."""
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks/distributed.py"), "--dry",
                           *([] if ddp else ["--no-ddp"])],
                          capture_output=True, text=True, check=False, timeout=300, env=os.environ | AS_ROOT)
    assert done.returncode == 0, done.stderr
    assert ("PyTorch DDP" in done.stdout) == ddp
    assert "hidden" in done.stdout


def test_what_is_hidden_was_not_waited_for(load):
    distributed = load("distributed")
    rounds = [{"1 process": {"ms": 9.0}, distributed.HALF: {"ms": 5.0},
               "2 ranks": {"ms": 10.0, "calls": 1.0, "waited": waited, "alone": 8.0}} for waited in (1, 2, 3)]
    found = distributed.parts(rounds, "2 ranks")["2 ranks"]
    assert found["hidden"]["median"] == pytest.approx(0.75)
    assert found["share"]["median"] == pytest.approx(0.3)


# --------------------------------------------------------------------------- modelled


def test_sizes_are_counted_as_the_models_have_them(load, scaling):
    for workload in (load("workloads").DRY, load("workloads").SIZES["toy"]):
        parameters = list(workload.model().parameters())
        size = scaling.Size.of(workload)
        assert (size.parameters, size.tensors) == (sum(p.size for p in parameters), len(parameters))


def test_one_host_has_nothing_to_exchange(scaling, size, host, network):
    alone = scaling.step(size, 500, 1, host, network, hidden=0.5)
    assert alone == scaling.Step(host.compute(size, 500), host.update(size))
    assert scaling.efficiency(size, 500, 1, host, network, hidden=0.5) == 1


def test_messages_and_bytes_of_a_host(scaling, size, host, network):
    """8 buckets, each to 3 owners and to 3 others; 3 of 4 parts there, and one part to 3 others."""
    found = scaling.step(size, 500, 4, host, network, hidden=0.0)
    assert found.latency == pytest.approx(8 * 6 * 1e-4)
    assert found.bandwidth == pytest.approx(2 * 0.75 * 32 * 2**20 / 1e8)
    assert found.exposed == pytest.approx(found.latency + found.bandwidth)
    assert found.bottleneck == "computation"
    assert scaling.step(size, 50, 4, host, network, hidden=0.0).bottleneck == "bandwidth"
    assert scaling.step(size, 50, 64, host, replace(network, latency=1e-2), hidden=0.0).bottleneck == "latency"


def test_on_a_network_without_limits_only_the_update_is_duplicated(scaling, size, host):
    endless = scaling.Network("endless", latency=0.0, bandwidth=float("inf"))
    host = replace(host, layer=0.0, byte=0.0)
    tokens, update = 16 * 500 * host.token(size), host.update(size)
    found = scaling.efficiency(size, 500, 16, host, endless, hidden=0.0)
    assert found == pytest.approx(1 - 15 * update / (tokens + 16 * update))


def test_no_more_is_hidden_than_the_backward_takes(scaling, size, host, network):
    short, long = (scaling.step(size, tokens, 4, host, network, hidden=0.8) for tokens in (20, 2000))
    assert short.hidden == pytest.approx(2 / 3 * short.compute)
    assert long.hidden == pytest.approx(0.8 * (long.latency + long.bandwidth))
    assert short.exposed > long.exposed > 0


@pytest.mark.parametrize("hidden", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("bandwidth", [1e7, 1e8, 1e10])
def test_with_these_tokens_hosts_have_the_efficiency(scaling, size, host, network, hidden, bandwidth):
    case = 8, host, replace(network, bandwidth=bandwidth), hidden
    tokens = scaling.enough_tokens(size, *case)
    assert scaling.efficiency(size, tokens, *case) == pytest.approx(scaling.ENOUGH)
    assert scaling.enough_tokens(size, 1, *case[1:]) == 0


def test_the_fit_has_no_negative_factors(scaling):
    rows = [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)]
    assert scaling.fitted(rows, [8.0, 7.0, 15.0]) == pytest.approx([2.0, 3.0])
    assert scaling.fitted([(1.0, 2.0), (2.0, 3.0)], [1.0, 3.0])[1] == 0  # at best 3 and -1


def test_a_fit_finds_the_machine_again_and_predicts_what_it_has_not_seen(load, scaling, host):
    """Times made from a known machine for all sizes; one is held out."""
    here, sharing = scaling.Network("here", latency=2e-5, bandwidth=2e9), 1.25
    measured = {}
    for name, workload in load("workloads").SIZES.items():
        size, tokens = scaling.Size.of(workload), workload.batch * workload.length
        whole, half = (scaling.step(size, count, 1, host, here, 0.7) for count in (tokens, tokens / 2))
        two = scaling.step(size, tokens / 2, 2, host, here, 0.7)
        row = {"1 process": {"ms": whole.seconds, "update": whole.update},
               "a rank's share of the batch": {"ms": half.seconds, "update": half.update},
               "2 ranks": {"ms": sharing * (two.compute + two.update) + two.calls + two.exposed, "update": two.update,
                           "calls": two.calls, "waited": two.exposed, "alone": two.latency + two.bandwidth}}
        measured[name] = scaling.Measured.of(workload, {
            program: {key: {"median": 1e3 * seconds} for key, seconds in numbers.items()}
            for program, numbers in row.items()})
    fit = scaling.Fit.to([one for name, one in measured.items() if name != "mid"])
    assert fit.sharing == pytest.approx(sharing)
    assert fit.here.bandwidth == pytest.approx(2e9)
    assert fit.host.flop == pytest.approx(host.flop)
    test = scaling.tested(fit, measured, "mid")
    assert max(abs(row["error"]) for row in test.values()) < 1e-6
    assert [title for title, row in test.items() if row["held out"]] == ["mid, 1 rank", "mid, 2 ranks"]
