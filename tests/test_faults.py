"""A sample of the campaign of faults: `tests.faults` says what they are."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
@pytest.mark.parametrize("arguments", [
    "--count 2", pytest.param("--kinds kill --count 25", marks=pytest.mark.slow),
    pytest.param("--kinds flips --count 100", marks=pytest.mark.slow)])
def test_no_fault_of_a_sample_loses_anything(arguments):
    """Each line of the output says how to repeat a fault."""
    done = subprocess.run([sys.executable, "-m", "tests.faults", *arguments.split()],
                          cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
