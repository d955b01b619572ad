"""Gradients between ranks with a GPU each: the bits of one process with as many shards.

The stand-in for CuPy computes, on two devices unless a test says otherwise.
"""

import json

import pytest

from tests.distributed import steps
from tests.distributed.mpirun import mpirun
from transformer.distributed import launch

pytestmark = pytest.mark.usefixtures("mpi")


@pytest.mark.parametrize(("ranks", "wanted"), [
    (2, {"shards": 3, "device": "cuda"}),
    pytest.param(4, {"shards": 3, "device": "cuda"}, marks=pytest.mark.slow),
    pytest.param(2, {"shards": 4, "threads": 2}, marks=pytest.mark.slow),
    pytest.param(3, {"shards": 4, "dtype": "float64", "bucket_bytes": 500}, marks=pytest.mark.slow),
    pytest.param(3, {"shards": 4, "bucket_bytes": 2**22}, marks=pytest.mark.slow),
    pytest.param(3, {"shards": 7, "device": "cuda"}, marks=pytest.mark.slow),
], ids=str)
def test_updates_have_the_bits_of_one_process(ranks, wanted):
    one = steps.of_one_process(**wanted)
    told = of_ranks(ranks, wanted)
    assert [found["bits"] for found in told] == [one["bits"]] * ranks
    assert [found["hooks"] for found in told] == [one["hooks"]] * ranks
    if wanted.get("device") == "cuda":
        devices = [f"cuda:{rank % wanted.get('devices', 2)}" for rank in range(ranks)]
        assert [found["device"] for found in told] == devices


def of_ranks(ranks, wanted):
    """What each rank found."""
    done = mpirun(ranks, "-m", "tests.distributed.steps", json.dumps(wanted))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ranks_of_a_host_take_its_gpus_in_turn(stand_in, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    taken = []
    for local in range(4):
        monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", str(local))
        taken.append(launch.own_device("cuda"))
    assert taken == ["cuda:0", "cuda:1"] * 2
    assert (launch.own_device("cuda:1"), launch.own_device("cpu")) == ("cuda:1", "cpu")
