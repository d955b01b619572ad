"""The helper that starts ranks hides no failure, and leaves nothing behind."""

import time

import pytest

from tests.distributed.mpirun import mpirun, runs

pytestmark = pytest.mark.usefixtures("mpi")


def test_a_rank_that_fails_gives_a_status_and_its_message():
    done = mpirun(3, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.rank != 1 or exit('rank 1 has had enough')")
    assert done.returncode != 0
    assert "rank 1 has had enough" in done.stderr


def test_ranks_that_hang_end_at_the_timeout_even_if_they_ignore_signals(tmp_path):
    code = ("import os, pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
            "pathlib.Path(sys.argv[1], str(os.getpid())).touch(); print('it waits', flush=True); time.sleep(600)")
    with pytest.raises(TimeoutError, match="it waits"):
        mpirun(2, "-c", code, tmp_path, timeout=5)
    ranks = [int(path.name) for path in tmp_path.iterdir()]
    assert len(ranks) == 2
    deadline = time.monotonic() + 30
    while any(runs(rank) for rank in ranks):
        assert time.monotonic() < deadline, f"of {ranks}, some are alive"
        time.sleep(0.05)
