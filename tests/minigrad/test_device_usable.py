"""Whether a GPU can be used: CuPy missing, no GPU, a library missing; each is told apart, and named with its remedy."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minigrad.device import DeviceError, cuda_status, devices

ROOT = Path(__file__).parents[2]


def test_a_gpu_that_does_not_exist(stand_in):
    with pytest.raises(DeviceError, match=r"no cuda:2; this machine has 2 \(cuda:0 to cuda:1\)"):
        devices.module_for("cuda:2")
    with pytest.raises(DeviceError, match="no cuda:9"):
        devices.to_device(np.zeros(2), "cuda:9")
    assert cuda_status() == (2, "")
    assert devices.require_cuda(1) is stand_in.cupy


# --- CuPy as it is without a GPU: it can be imported, and raises when the runtime is asked for anything


class CUDARuntimeError(RuntimeError):
    pass


class CompileException(Exception):
    pass


def outcome(value):
    if isinstance(value, Exception):
        raise value
    return value


def fake_cupy(count=1, ones=None, product=None):
    """A CuPy with one GPU, of which a part may raise an exception."""
    class Ones:
        def __add__(self, other):
            return self

        def __matmul__(self, other):
            return outcome(product)

    return SimpleNamespace(
        ones=lambda shape, dtype: outcome(ones or Ones()), float32=np.float32, asnumpy=np.asarray,
        cuda=SimpleNamespace(
            Device=nullcontext, compiler=SimpleNamespace(CompileException=CompileException),
            runtime=SimpleNamespace(CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: outcome(count))))


@pytest.fixture
def status_with(monkeypatch):
    """What `cuda_status` says where ``import cupy`` finds this."""
    def status(cupy):
        monkeypatch.setattr(devices, "_cuda_module", None)
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        return cuda_status()

    return status


def test_without_cupy_the_message_names_the_extras(status_with):
    assert status_with(fake_cupy()) == (1, "")
    count, reason = status_with(None)  # as if it were not installed
    assert count == 0
    assert reason.startswith("CuPy is not installed")
    assert ".[cuda12]" in reason


@pytest.mark.parametrize(("broken", "reason"), [
    ({"count": CUDARuntimeError("cudaErrorInsufficientDriver: too old")}, "cudaErrorInsufficientDriver: too old"),
    ({"count": 0}, "the driver reports no device"),
    ({"ones": CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")}, "out of memory"),
])
def test_without_a_gpu_the_message_gives_the_runtimes_reason(status_with, broken, reason):
    count, message = status_with(fake_cupy(**broken))
    assert count == 0
    assert message.startswith("CuPy is installed, but there is no usable GPU: ")
    assert reason in message


@pytest.mark.parametrize(("broken", "library"), [
    ({"product": ImportError("libcublas.so.12: cannot open shared object file")}, "libcublas.so.12"),
    ({"ones": RuntimeError("Failure finding libnvrtc.so.12:\nNo such file")}, "libnvrtc.so.12"),
    ({"ones": CompileException("cannot open source file cuda_fp16.h")}, "cuda_fp16.h"),
])
def test_without_a_cuda_library_the_message_names_it(status_with, broken, library):
    count, message = status_with(fake_cupy(**broken))
    assert count == 0
    assert message.startswith("CuPy is installed, but a library it needs is missing: ")
    assert library in message
    assert ".[cuda12]" in message
    assert "\n" not in message


BANNER = """
try:
    raise ImportError("libcuda.so.1: cannot open shared object file")
except ImportError as error:
    raise ImportError("=====\\nFailed to import CuPy.\\n=====") from error
"""


@pytest.mark.parametrize(("source", "library"), [
    ("import a_missing_package", "a_missing_package"), (BANNER, "missing: libcuda.so.1: cannot open"),
])
def test_a_cupy_that_cannot_be_loaded(monkeypatch, tmp_path, source, library):
    (tmp_path / "cupy.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(devices, "_cuda_module", None)
    count, message = cuda_status()
    assert count == 0
    assert library in message
    assert "a library it needs is missing" in message


def test_importing_minigrad_imports_no_cupy(tmp_path):
    (tmp_path / "cupy.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    script = "import minigrad, minigrad.device as d; d.to_device(d.asarray_on('cpu', [1]), 'cpu')"
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=60)
