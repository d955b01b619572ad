"""Gradients between ranks with a GPU each: the bits of one process with as many shards, whatever carries them.

The stand-in for CuPy computes, on two devices unless a test says otherwise. What it carries by NCCL goes by MPI, under
NCCL's rules.
"""

import json
import re
from types import SimpleNamespace

import pytest

from tests.distributed import steps
from tests.distributed.mpirun import mpirun
from transformer.distributed import launch

pytestmark = pytest.mark.usefixtures("mpi")
slow = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")]  # inf - inf, to be skipped
HALF = {"half": True, "scale": 2.0**17}


@pytest.mark.parametrize(("ranks", "wanted"), [
    (2, {"shards": 3, "device": "cuda", "carries": "nccl"}),
    pytest.param(2, {"shards": 3, "device": "cuda"}, marks=slow),
    pytest.param(2, {"shards": 3, "device": "cuda", "carries": "cuda-aware MPI"}, marks=slow),
    pytest.param(1, {"shards": 3, "device": "cuda", "carries": "nccl"}, marks=slow),
    pytest.param(4, {"shards": 6, "device": "cuda", "carries": "nccl", "devices": 4}, marks=slow),
    pytest.param(4, {"shards": 3, "device": "cuda"}, marks=slow),
    pytest.param(2, {"shards": 4, "device": "cuda", "carries": "nccl", **HALF}, marks=slow),
    pytest.param(2, {"shards": 4, "device": "cuda", **HALF}, marks=slow),
    pytest.param(2, {"shards": 4, "threads": 2}, marks=slow),
    pytest.param(3, {"shards": 7, "threads": 2, **HALF}, marks=slow),
], ids=str)
def test_updates_have_the_bits_of_one_process(ranks, wanted):
    one = steps.of_one_process(**wanted)
    told = of_ranks(ranks, wanted)
    assert [found["bits"] for found in told] == [one["bits"]] * ranks
    assert [found["hooks"] for found in told] == [one["hooks"]] * ranks
    if wanted.get("half"):
        assert sorted({skipped for skipped in one["bits"] if isinstance(skipped, bool)}) == [False, True]
    if wanted.get("device") == "cuda":
        devices = [f"cuda:{rank % wanted.get('devices', 2)}" for rank in range(ranks)]
        assert [found["device"] for found in told] == devices
    if wanted.get("carries") == "nccl":  # the last rank always has a shard, so that it knows what was reached
        assert told[-1]["waits"] == one["waits"]


def of_ranks(ranks, wanted):
    """What each rank found."""
    done = mpirun(ranks, "-m", "tests.distributed.steps", json.dumps(wanted))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "wanted", "message"), [
    (3, {"device": "cuda"}, r"rank 0 \(.*\) and rank 2 \(.*\) have the same GPU, 0000:00:00.0, .*: start fewer ranks"),
    (2, {"device": "cpu"}, "the device is cpu: give --device cuda, or --distributed mpi"),
    (2, {"device": "cuda", "library": False}, r"does not find NCCL on rank 0 \(.*\): pip install nvidia-nccl-cu12"),
], ids=["the same GPU", "no GPU", "no NCCL"])
def test_every_rank_says_why_nccl_would_wait_for_ever(ranks, wanted, message):
    done = mpirun(ranks, "-m", "tests.distributed.steps", json.dumps({"shards": 2, "carries": "nccl", **wanted}))
    told = [line for line in done.stderr.splitlines() if line.startswith("LaunchError: ")]
    assert len(told) == ranks
    assert all(re.search(message, line) for line in told)


def test_nccl_on_the_host_is_refused_with_the_options(monkeypatch):
    monkeypatch.setattr(launch, "_started", SimpleNamespace(kind="nccl"))
    with pytest.raises(launch.LaunchError, match="give --device cuda, or --distributed mpi"):
        launch.own_device("cpu")


def test_ranks_of_a_host_take_its_gpus_in_turn(stand_in, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    taken = []
    for local in range(4):
        monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", str(local))
        taken.append(launch.own_device("cuda"))
    assert taken == ["cuda:0", "cuda:1"] * 2
    assert (launch.own_device("cuda:1"), launch.own_device("cpu")) == ("cuda:1", "cpu")
