"""Without kernels, mixed precision and instruments, minigrad's tests pass: models train, and functions are right."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("folders", [["nn", "optim"],
                                     pytest.param(["ops", "functional"], marks=pytest.mark.slow)])
def test_a_model_trains_and_the_tests_pass(folders):
    paths = [f"tests/minigrad/{folder}" for folder in folders]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.page_alone", "-p", "no:cacheprovider", *paths]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout
