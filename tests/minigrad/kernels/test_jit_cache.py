"""Compiled kernels on disk: loaded again, never after a change of what they are made of, and never in the way."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import minigrad
from minigrad import kernels

numba = pytest.importorskip("numba", reason="the extra jit is not installed")

PROGRAM = """
import json, numba, minigrad
before = numba.config.CACHE_DIR
with minigrad.jit():
    out = minigrad.functional.softmax(minigrad.Tensor([0.0, 1.0]))
assert numba.config.CACHE_DIR == before
print(json.dumps([out.numpy()[1].item(), *minigrad.kernels.compile_time()[1:]]))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package, with nothing compiled yet."""
    shutil.copytree(Path(minigrad.__file__).parent, tmp_path / "minigrad", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "minigrad"


def run(package, **environment):
    """The softmax of 1 beside 0 by the copy's kernel, and how many kernels were compiled and loaded for it."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    variables |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=variables,
                          cwd=package.parent)
    assert done.returncode == 0, done.stderr
    value, compiled, loaded = json.loads(done.stdout)
    return pytest.approx(value, rel=1e-6), compiled, loaded


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def folders(parent):
    return {path.name for path in parent.glob("minigrad-kernels-*")}


def test_a_change_of_a_helper_in_another_file_reaches_kernels_on_disk(package):
    beside, helpers = package / "kernels" / "compiled" / "__pycache__", package / "kernels" / "compiled" / "math.py"
    assert run(package) == (sigmoid(1), 1, 0)
    assert run(package) == (sigmoid(1), 0, 1)
    (before,) = folders(beside)
    source = helpers.read_text()
    assert source.count("return x - y\n") == 1
    helpers.write_text(source.replace("return x - y\n", "return (x - y) + (x - y)\n"))
    assert run(package) == (sigmoid(2), 1, 0)
    (after,) = folders(beside)
    assert after != before


def test_the_folder_that_the_user_names(package, tmp_path):
    named = tmp_path / "named"
    other = named / "minigrad-kernels-of-another-installation"
    other.mkdir(parents=True)
    assert run(package, NUMBA_CACHE_DIR=str(named)) == (sigmoid(1), 1, 0)
    assert len(folders(named)) == 2
    assert other.exists()
    assert not (package / "kernels" / "compiled" / "__pycache__").exists()


def test_the_users_cache_folder_is_the_last_resort_and_kernels_do_without(package, tmp_path):
    """A file is where another folder would be."""
    (package / "kernels" / "compiled" / "__pycache__").write_text("")
    user = {name: str(tmp_path / "user") for name in ("XDG_CACHE_HOME", "LOCALAPPDATA")}
    assert run(package, **user) == (sigmoid(1), 1, 0)
    assert len(folders(tmp_path / "user")) == 1
    (tmp_path / "file").write_text("")
    nowhere = dict.fromkeys([*user, "NUMBA_CACHE_DIR"], str(tmp_path / "file"))
    assert run(package, **nowhere) == (sigmoid(1), 1, 0)


@pytest.mark.parametrize("error", [OSError("the disk is full"), RuntimeError("no locator available")], ids=repr)
def test_what_cannot_be_kept_is_compiled_all_the_same(error, monkeypatch):
    from minigrad.kernels.compiled.kernel import Kernel
    from minigrad.kernels.compiled.softmax import softmax_rows

    made = Kernel._make

    def refuse(self, signature, cache):
        if cache:
            raise error
        return made(self, signature, cache)

    monkeypatch.setattr(Kernel, "_make", refuse)
    out = np.empty((1, 2), np.float32)
    Kernel(softmax_rows.function)(np.zeros((1, 2), np.float32), out)
    np.testing.assert_array_equal(out, 0.5)


def test_threads_that_need_a_kernel_at_once_make_it_ready_once():
    from minigrad.kernels.compiled.kernel import Kernel
    from minigrad.kernels.compiled.softmax import softmax_rows

    kernel, meeting, results = Kernel(softmax_rows.function), threading.Barrier(4, timeout=20), []
    before = len(kernels.made_ready)

    def compute():
        out = np.empty((1, 2), np.float32)
        meeting.wait()
        kernel(np.zeros((1, 2), np.float32), out)
        results.append(out.tolist())

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[[0.5, 0.5]]] * 4
    assert len(kernels.made_ready) == before + 1
