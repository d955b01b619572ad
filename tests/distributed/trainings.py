"""Trainings of a second by the command, in this process or on several ranks."""

from pathlib import Path

from tests.distributed.mpirun import mpirun
from tests.transformer.commands import SMALL, call

OPTIONS = [*SMALL, "--dropout", 0.1, "--valid-sentences", 4, "--threads", 1, "--shards", 4, "--steps", 10,
           "--valid-every", 4]
OURS = ("Error: ", "stopped", "Traceback", "step ", "note: ")
COMMAND = ["-m", "transformer"]
DISTURBED = Path(__file__).with_name("disturbed.py")


def on_one(*arguments):
    """The output of a command, which must succeed, in this process."""
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def on_ranks(ranks, *arguments):
    """The output of a command, which must succeed, of all ranks."""
    done = mpirun(ranks, *COMMAND, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def disturbed(ranks, who, fault, *arguments):
    """The status of mpirun, and the lines of the ranks on standard error: without those of the launcher."""
    done = mpirun(ranks, DISTURBED, who, fault, *arguments)
    lines = done.stderr.replace("\0", "").splitlines()  # Open MPI adds the end of its strings
    return done.returncode, [line for line in lines if line.startswith(OURS)]
