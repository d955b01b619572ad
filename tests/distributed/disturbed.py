"""The command, on ranks of which some meet a fault: ``disturbed.py WHO FAULT[@STEP] arguments of the command``.

WHO are numbers with commas between them, or ``all``. FAULT is a function below or the name of a signal; it happens
after the update STEP, or before the command begins. ``{rank}`` in an argument is the number of the rank.
"""

import contextlib
import functools
import os
import signal
import sys

from minigrad.device import array_module

from tests.strict_cupy import cupy, special
from transformer.cli import main, sources
from transformer.distributed import buckets, launch, ranks
from transformer.training import loop, threads
from transformer.training.trainer import Trainer

OPEN = contextlib.ExitStack()  # until the process ends


def lose_memory(trainer):
    raise MemoryError


def leave(trainer):
    os._exit(3)


def drift(trainer):
    """A weight changes in its last digits, as on a machine that computes wrongly."""
    weight = next(trainer.model.parameters())
    weight.data[-1, -1] *= 1.0001


def lose_numbers(trainer):
    next(trainer.model.parameters()).data[...] = float("nan")


def other_code(_):
    loop.code_digest = lambda: 0


def elsewhere(_):
    """In a folder in which nobody can write."""
    os.chdir("/proc")


def impatience(_):
    launch.Ranks = functools.partial(launch.Ranks, timeout=4)
    ranks.GRACE = 3.0


def nothing(_):
    pass


def in_small_buckets(_):
    buckets.BUCKET_BYTES = 500


def on_gpus(_):
    """The stand-in for CuPy computes."""
    in_small_buckets(_)
    OPEN.enter_context(array_module(cupy, special))


def in_threads(_):
    """However small the model."""
    threads.SMALL, threads.SHARD_TOKENS = 0, 1


def stop_early(_):
    """Ctrl-C comes while the data is read."""
    read = sources.read

    def read_and_stop(data):
        signal.raise_signal(signal.SIGINT)
        return read(data)

    sources.read = read_and_stop


def of_name(name):
    return globals().get(name) or (lambda _: signal.raise_signal(getattr(signal, name)))


def begin(who, fault, *arguments):
    rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
    name, _, step = fault.partition("@")
    if name == "SIGSTOP":
        impatience(None)
    if who == "all" or rank in who.split(","):
        action, update = of_name(name), Trainer.update

        def update_and_meet(trainer, group):
            update(trainer, group)
            if trainer.progress.step == int(step):
                action(trainer)

        if step:
            Trainer.update = update_and_meet
        else:
            action(None)
    main([argument.replace("{rank}", rank) for argument in arguments])


if __name__ == "__main__":
    begin(*sys.argv[1:])
