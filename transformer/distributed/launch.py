"""How several processes begin: whether a launcher started them, and what each of them takes.

A launcher (``mpirun``, ``srun``) starts the same command once for each rank, and says so in environment variables.
"""

import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import minigrad
from minigrad.device import module_for

from transformer.distributed.ranks import ALONE, Alone, Ranks

# How many processes a launcher started, and which is this one: Open MPI, those with PMI (MPICH, Intel, SLURM), SLURM
# with PMIx.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_NUMBERS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_started: Alone | None = None


class LaunchError(RuntimeError):
    """The processes of a launcher cannot work together; the message is one line, with the remedy."""


def launched() -> int:
    """How many processes a launcher started, this one included; 1 without a launcher."""
    return _largest(_SIZES, 1)


def number() -> int:
    """The number of this process among those that a launcher started; 0 without a launcher."""
    return _largest(_NUMBERS, 0)


def _largest(names: Sequence[str], otherwise: int) -> int:
    """The largest number in these variables, but for SLURM's where they are of the job around mpirun, not of a step."""
    told = [os.environ.get(name, "") for name in names if "PMIX_RANK" in os.environ or not name.startswith("SLURM")]
    return max([int(value) for value in told if value.isdecimal()], default=otherwise)


def world(alone: bool = False) -> Alone:
    """The ranks of this process: all that a launcher started, or it `alone`, as the first call says.

    Raises:
        LaunchError: mpi4py is missing, or belongs to another MPI than the launcher.
    """
    global _started
    if _started is None:
        _started = ALONE if alone or launched() == 1 else _of_mpi()
    return _started


def _of_mpi() -> Alone:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: it finds no library of an MPI
        raise LaunchError("several ranks need mpi4py and an MPI, from  pip install 'minigrad-transformer[mpi]': "
                          f"{error}") from error
    size = MPI.COMM_WORLD.Get_size()
    if size < launched():
        version = MPI.Get_library_version().split(",")[0]
        raise LaunchError(f"the launcher started {launched()} processes, and the MPI of mpi4py sees {size}: they are "
                          f"of different MPIs. mpi4py has {version}; start with its mpirun "
                          f"({Path(sys.executable).with_name('mpirun')}, if it came by pip)")
    return Ranks(MPI.COMM_WORLD)


def own_device(device: str) -> str:
    """The device of this process, of a name without a number: ranks of one host take its GPUs in turn."""
    if device != "cuda":
        return device
    return f"cuda:{_largest(_LOCAL_RANKS, 0) % module_for('cuda').cuda.runtime.getDeviceCount()}"


def code_digest() -> int:
    """A checksum of the source of both packages."""
    packages = Path(__file__).parents[1], Path(minigrad.__file__).parent
    return zlib.crc32(b"".join(path.read_bytes() for package in packages for path in sorted(package.rglob("*.py"))))
