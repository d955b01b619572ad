"""Imports from the modules of version 0.1.0 work, and say where a name has moved to."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_old_import_works_or_says_where_the_name_is_now():
    """In a process of its own: importing the compiled kernels gives functions their compiled bodies."""
    done = subprocess.run([sys.executable, "-m", "tests.deep_imports"], cwd=ROOT, capture_output=True, text=True,
                          timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "", done.stdout
