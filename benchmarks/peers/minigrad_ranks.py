"""minigrad and transformer on the ranks of MPI, each with one thread: ``mpirun -n 2 python …``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from mpi4py import MPI
from workloads import CLIP_NORM, Workload

from peers import Group, Ranked
from peers.minigrad_training import model_of, training
from transformer.training import DistributedGradients
from transformer.training.threads import limit_threads

PAUSE = 0.002  # seconds between looks whether rank 0 has spoken


def group(comm: MPI.Intracomm) -> Group:
    """The ranks of a communicator."""

    def tell(number: int) -> int:
        told = np.array(number)
        request = comm.Ibcast(told)
        while not request.Test():  # a blocking call would keep the processor busy
            time.sleep(PAUSE)
        return int(told)

    return Group(comm.rank, comm.size, tell, comm.Barrier, comm.allreduce)


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Ranked]:
    """See `peers`; `threads` is the number of ranks, and there are as many as mpirun has started."""
    comm = MPI.COMM_WORLD
    if comm.size != threads:
        raise SystemExit(f"{threads} ranks are to be measured, and mpirun has started {comm.size}")
    model = model_of(workload, weights)
    with limit_threads(1), DistributedGradients(model, comm) as gradients:
        yield Ranked(group(comm), training(model, gradients, clip=CLIP_NORM, ranks=comm.size))
