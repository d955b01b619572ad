"""Each program of benchmarks/ runs from end to end; with a peer it compares losses or translations on the way."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.mpirun import command

ROOT = Path(__file__).parents[1]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PYTORCH = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs PyTorch, which it measures against")
RANKS = pytest.mark.skipif(not (importlib.util.find_spec("mpi4py") and command()), reason="needs mpi4py and mpirun")


@pytest.mark.slow
@pytest.mark.parametrize("line", [
    pytest.param("training.py", marks=PYTORCH), pytest.param("decoding.py", marks=PYTORCH),
    pytest.param("import_time.py", marks=PYTORCH), pytest.param("on_a_card.py --stand-in", marks=PYTORCH),
    pytest.param("distributed.py", marks=[PYTORCH, RANKS]), pytest.param("distributed.py --no-ddp", marks=RANKS),
])
def test_a_program_runs(line):
    script, *arguments = line.split()
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks" / script), *arguments, "--dry"], timeout=300,
                          capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | AS_ROOT)
    assert done.returncode == 0, done.stderr
    assert "| quartiles |" in done.stdout
