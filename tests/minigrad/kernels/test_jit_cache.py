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


def run(package):
    """The softmax of 1 beside 0 by the copy's kernel, and how many kernels were compiled and loaded for it."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    variables |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=variables,
                          cwd=package.parent)
    assert done.returncode == 0, done.stderr
    value, compiled, loaded = json.loads(done.stdout)
    return pytest.approx(value, rel=1e-6), compiled, loaded


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def folders(parent):
    return {path.name for path in parent.glob("minigrad-kernels-*")}


def test_a_change_of_a_helper_in_another_file_reaches_kernels_on_disk(tmp_path):
    package = tmp_path / "minigrad"
    shutil.copytree(Path(minigrad.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
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


def softmax_of_zeros(kernel):
    out = np.empty((1, 2), np.float32)
    kernel(np.zeros((1, 2), np.float32), out)
    return out.tolist()


def test_where_kernels_are_kept(tmp_path, monkeypatch):
    """In the folder that the user names, beside the sources, in the user's own, or, where none can be made, nowhere."""
    from minigrad.kernels.compiled import cache
    from minigrad.kernels.compiled.kernel import Kernel
    from minigrad.kernels.compiled.softmax import softmax_rows

    def used():
        cache._writable_folder.cache_clear()
        with cache.cache_folder() as folder:
            assert folder is None or str(folder) == numba.config.CACHE_DIR
            return folder and folder.parent

    named, package, user = (tmp_path / name for name in ("named", "package", "user"))
    for parent in (named, package / "__pycache__"):
        (parent / "minigrad-kernels-of-another-version").mkdir(parents=True)
    monkeypatch.setattr(cache, "HERE", package)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(named))
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(user))
    try:
        assert used() == named
        assert len(folders(named)) == 2
        monkeypatch.setattr(numba.config, "CACHE_DIR", "")
        assert used() == package / "__pycache__"
        assert folders(package / "__pycache__") == {cache.NAME}
        shutil.rmtree(package)
        package.write_text("")
        assert used() == user
        shutil.rmtree(user)
        user.write_text("")
        assert used() is None
        assert softmax_of_zeros(Kernel(softmax_rows.function)) == [[0.5, 0.5]]
        assert numba.config.CACHE_DIR == ""
    finally:
        cache._writable_folder.cache_clear()


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
    assert softmax_of_zeros(Kernel(softmax_rows.function)) == [[0.5, 0.5]]


def test_threads_that_need_a_kernel_at_once_make_it_ready_once():
    from minigrad.kernels.compiled.kernel import Kernel
    from minigrad.kernels.compiled.softmax import softmax_rows

    kernel, meeting, results = Kernel(softmax_rows.function), threading.Barrier(4, timeout=20), []
    before = len(kernels.made_ready)

    def compute():
        meeting.wait()
        results.append(softmax_of_zeros(kernel))

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[[0.5, 0.5]]] * 4
    assert len(kernels.made_ready) == before + 1
