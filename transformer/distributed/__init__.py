"""Several processes that train one model, on one machine or many: the ranks of MPI.

    launch.py   whether a launcher started several processes, and what each of them takes: rank, threads, device
    ranks.py    what the ranks tell each other, with an end to every wait, and how they end together if one of them
                fails; one process alone is the simplest case
    buckets.py  the sum of the gradients of all ranks, in a fixed order, while the backward pass goes on

MPI carries the bytes (`mpi4py`, https://mpi4py.readthedocs.io); nothing here is a transport of its own.
"""

from transformer.distributed.ranks import ALONE, Alone, RankError, Ranks

__all__ = ["ALONE", "Alone", "RankError", "Ranks"]
