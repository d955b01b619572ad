"""Every public name that an earlier version offered is still there, and imports from version 0.1.0's modules work."""

import subprocess
import sys
from pathlib import Path

from tests.public_names import RECORDED, describe

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_there_with_its_signature():
    """An intended change belongs in CHANGELOG.md; then ``python -m tests.public_names``."""
    different = [f"{module}: {path}: was {was}, is {now}" for module, paths in RECORDED.items()
                 for path, was in paths.items() if (now := describe(path, module)) != was]
    assert not different, "\n".join(different)


def test_every_old_import_works_or_says_where_the_name_is_now():
    """In a process of its own: importing the compiled kernels gives functions their compiled bodies."""
    done = subprocess.run([sys.executable, "-m", "tests.deep_imports"], cwd=ROOT, capture_output=True, text=True,
                          timeout=120)
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", "")
