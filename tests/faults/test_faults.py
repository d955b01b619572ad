"""A sample of the campaign of faults, of each kind: `tests.faults` says what they are."""

import subprocess
import sys

import pytest

from tests.distributed.mpirun import no_mpi
from tests.faults.campaign import KINDS
from tests.faults.children import ROOT

COUNTS = {"kill": 25, "disk": 30, "writers": 25, "flips": 200, "edits": 100, "commands": 200, "engine": 500, "ranks": 3}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="descriptors of processes, small disks and /proc of Linux")
@pytest.mark.parametrize("kind", KINDS)
def test_no_fault_of_a_sample_loses_anything(kind):
    """In a process of its own, without threads, which may fork; each line of its output says how to repeat a fault."""
    if kind == "ranks" and (reason := no_mpi()):
        pytest.skip(f"no ranks: {reason}")
    done = subprocess.run([sys.executable, "-m", "tests.faults", "--kinds", kind, "--count", str(COUNTS[kind])],
                          cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
