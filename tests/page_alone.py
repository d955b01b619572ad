"""A plugin for pytest: minigrad without the packages that work on it from outside, as if they were not installed.

``python -m pytest -p tests.page_alone tests/minigrad/ops`` runs what does not need them. A test, or a file of tests,
that imports one of them by itself is skipped. Any other import of one fails, and its test with it.
"""

import importlib
import sys
import traceback
from pathlib import Path

import pytest

BLOCKED = tuple(f"minigrad.{name}" for name in ("kernels", "precision", "inspect"))
ROOT = Path(__file__).parents[1]
# Imports from these are those of the tests: their own, or the ones that a public name such as minigrad.profile makes.
OF_TESTS = (ROOT / "tests", ROOT / "minigrad/__init__.py", ROOT / "minigrad/optim/__init__.py")

if "minigrad" in sys.modules:
    raise RuntimeError("tests.page_alone: minigrad is imported already; name the plugin with -p on the command line")
sys.modules.update(dict.fromkeys(BLOCKED))  # type: ignore[arg-type]  # None: an import of it fails, and nothing is found


def is_the_tests_own(error):
    """Whether it is an import of a blocked package which a test asked for."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    return str(error.name).startswith(BLOCKED) and any(Path(files[-1]).is_relative_to(own) for own in OF_TESTS)


def pytest_ignore_collect(collection_path, config):
    """Leave out the files of tests that import a blocked package, themselves or through a helper."""
    named = any(collection_path.is_relative_to(ROOT / argument.partition("::")[0]) for argument in config.args)
    if not named or not collection_path.name.startswith("test_"):
        return None
    try:
        importlib.import_module(".".join(collection_path.relative_to(ROOT).with_suffix("").parts))
    except ModuleNotFoundError as error:
        return is_the_tests_own(error) or None
    except pytest.skip.Exception:  # of the whole file: pytest meets it again, and tells of it
        return None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test that needs a blocked package while it runs."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if is_the_tests_own(error):
            pytest.skip(f"needs {error.name}")
        raise
