"""minigrad and transformer on the ranks of MPI, each with one thread: ``mpirun -n 2 python …``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from mpi4py import MPI
from workloads import Workload

from peers import Group, Ranked
from peers.minigrad_process import Steps, model_of
from transformer import Transformer
from transformer.distributed.buckets import Communication, Exchange, Layout, Transport
from transformer.distributed.ranks import Ranks
from transformer.training.distributed_gradients import DistributedGradients
from transformer.training.threads import limit_threads

MIB = 2**20
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


class ExchangeAlone:
    """The exchange of a step without its backward pass: all gradients are there when it begins.

    Args:
        model: the model, after a step.
        ranks: the ranks; each computes one shard.
    """

    def __init__(self, model: Transformer, ranks: Ranks) -> None:
        self.parameters, self.shards = list(model.parameters()), ranks.size
        self.layout, self.transport = Layout(reversed(self.parameters)), Transport(ranks, "cpu")
        self.span = ranks.own(self.shards)

    def exchange(self) -> None:
        """All ranks end with the sums, in arrays of their own."""
        one = Exchange(self.transport, self.layout, self.shards, Communication())
        one.finish((leaf, {self.span: (leaf.grad.data, True)}) for leaf in self.parameters)


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Ranked]:
    """See `peers`; `threads` is the number of ranks, and there are as many as mpirun has started."""
    comm = MPI.COMM_WORLD
    if comm.size != threads:
        raise SystemExit(f"{threads} ranks are to be measured, and mpirun has started {comm.size}")
    model = model_of(workload, weights)
    with limit_threads(1), DistributedGradients(model, comm) as gradients:
        steps, communication = Steps(model, gradients, comm.size), gradients.communication

        def parts() -> dict[str, float]:
            taken = {"update": steps.updates(), "calls": 1e3 * communication.seconds,
                     "waited": 1e3 * communication.waited, "MiB": communication.bytes / MIB}
            communication.reset()
            return taken

        yield Ranked(group(comm), steps.training(), parts, ExchangeAlone(model, gradients.ranks).exchange)
