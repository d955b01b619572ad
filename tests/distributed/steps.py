"""A few updates of a small model, by one process or by the ranks that mpirun starts: the bits of what comes out.

    python -m tests.distributed.steps '{"device": "cuda", "shards": 4}'

On the device "cuda" the stand-in for CuPy computes. Rank 0 prints, for each rank, what `updates` returned there.
"""

import contextlib
import json
import os
import sys
import traceback
import zlib

import numpy as np

import minigrad as mg
from minigrad import nn, optim
from minigrad.device import array_module, to_numpy

from tests import strict_cupy
from tests.strict_cupy import machine
from transformer.distributed import Ranks, launch
from transformer.model import Transformer, TransformerConfig
from transformer.training.parallel_gradients import ParallelGradients

CONFIG = TransformerConfig(40, 40, d_model=16, num_heads=2, num_encoder_layers=2, num_decoder_layers=2, d_ff=32,
                           dropout=0.1, share_embeddings=True, tie_output=True)
RARE = 39  # a token that one or two sentences of a batch have


class WithRareParameter(Transformer):
    """A parameter that batches without the token `RARE` do not reach, and one that nothing reaches."""

    def __init__(self, config):
        super().__init__(config)
        self.rare, self.unused = nn.Parameter(np.ones(3)), nn.Parameter(np.ones(2))

    def loss(self, source, labels, *arguments, **options):
        loss = super().loss(source, labels, *arguments, **options)
        return loss + (self.rare * 2.0).sum() if (to_numpy(source) == RARE).any() else loss


def updates(make_gradients, device="cpu", dtype="float32", rows=7, steps=3, **_):
    """Updates with two batches each; returns the losses, and checksums of gradients and of the weights at the end.

    A parameter is frozen, another one has a hook, and the first batch of an update has one row, which is one shard.
    """
    mg.manual_seed(3)
    model = WithRareParameter(CONFIG).to(device, dtype=dtype)
    parameters = list(model.parameters())
    parameters[5].requires_grad = False
    hooked = []
    parameters[2].register_hook(lambda gradient: hooked.append(1) or gradient * 2)
    optimizer = optim.Adam([p for p in parameters if p.requires_grad], lr=0.01)
    random, found = np.random.default_rng(5), []
    with make_gradients(model) as gradients:
        for _ in range(steps):
            optimizer.zero_grad()
            losses = []
            for count in (1, rows):
                batch = random.integers(4, 40, (2, count, 6))
                losses.append(gradients(*batch, 0.1, 2 * count))
            found.append([float(loss) for loss in losses])
            found.append([None if p.grad is None else checksum(p.grad) for p in parameters])
            optimizer.step()
    found.append([checksum(p) for p in parameters])
    return {"bits": found, "hooks": len(hooked), "device": model.device}


def checksum(tensor):
    return zlib.crc32(to_numpy(tensor.data).tobytes())


@contextlib.contextmanager
def stand_in_for(device):
    with array_module(strict_cupy.cupy, strict_cupy.special) if device != "cpu" else contextlib.nullcontext():
        yield


def have_devices(count):
    machine.DEVICES, machine.CAPABILITIES = count, ["80"] * count
    machine.memory.used, machine.memory.held = [0] * count, [0] * count


def main(wanted):
    from mpi4py import MPI  # not above: the process that compares starts no MPI

    shards, threads = wanted["shards"], wanted.get("threads", 1)
    with stand_in_for(wanted.get("device", "cpu")):
        if wanted.get("device") == "cuda":
            have_devices(wanted.get("devices", 2))
            wanted["device"] = launch.own_device("cuda")
        ranks = Ranks(MPI.COMM_WORLD)
        size = wanted.pop("bucket_bytes", 4000)
        result = updates(lambda model: ParallelGradients(model, threads, shards, ranks, size), **wanted)
        told = ranks.exchange(result)
    if ranks.rank == 0:
        print(json.dumps(told))


def of_one_process(shards, threads=1, **wanted):
    with stand_in_for(wanted.get("device", "cpu")):
        return updates(lambda model: ParallelGradients(model, threads, shards), **wanted)


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except launch.LaunchError as error:
        sys.exit(f"LaunchError: {error}")
    except Exception:  # noqa: BLE001 - printed, and the end of all ranks
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # the launcher then ends the other ranks
