"""Whether a GPU can be used: CuPy missing, no GPU, a library missing; each is told apart, and named with its remedy."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from minigrad.device import DeviceError, devices, xp

ROOT = Path(__file__).parents[2]


def test_the_stand_in_leaves_nothing_behind(stand_in):
    array = stand_in.cupy.zeros(2)
    assert xp(array) is stand_in.cupy
    namespaces = devices._namespaces.copy()
    with devices.array_module(stand_in.cupy, stand_in.special):
        assert devices.device_of(array) == "cuda:0"
    assert devices._namespaces == namespaces
    assert xp(array) is stand_in.cupy


def test_arrays_of_a_module_that_is_gone_are_no_arrays():
    from tests import strict_cupy

    with devices.array_module(strict_cupy.cupy, strict_cupy.special):
        array = strict_cupy.cupy.zeros(2)
    assert not devices.is_array(array)


def test_a_gpu_that_does_not_exist(stand_in):
    with pytest.raises(DeviceError, match=r"there is no cuda:2; this machine has 2 \(cuda:0 to cuda:1\)"):
        devices.module_for("cuda:2")
    with pytest.raises(DeviceError, match="no cuda:9"):
        devices.to_device(np.zeros(2), "cuda:9")
    assert devices.cuda_status() == (2, "")
    assert devices.require_cuda(1) is stand_in.cupy


NO_CUPY = "import sys; sys.modules['cupy'] = None"  # as if it were not installed

# What CuPy 14 does without a GPU: it can be imported, and raises when the runtime is asked for anything.
FAKE_CUPY = """
    import types
    import numpy
    class CUDARuntimeError(RuntimeError): pass
    class CompileException(Exception): pass
    class Device:
        def __init__(self, index): pass
        def __enter__(self): return self
        def __exit__(self, *exception): pass
    def get_device_count():
        {count}
    def ones(shape, dtype):
        {ones}
    class Ones:
        def __add__(self, other): return self
        def __matmul__(self, other):
            {matmul}
    class ndarray: pass
    float32 = numpy.float32
    def asnumpy(array): return numpy.zeros(1)
    cuda = types.SimpleNamespace(
        Device=Device,
        compiler=types.SimpleNamespace(CompileException=CompileException),
        runtime=types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError, getDeviceCount=get_device_count),
    )
"""
WORKING = {"count": "return 1", "ones": "return Ones()", "matmul": "return self"}


def status_in_a_new_process(tmp_path, prelude="", cupy_source=None):
    """What ``cuda_status`` says in a process that finds the given package as ``cupy``."""
    if cupy_source is not None:
        package = tmp_path / "cupy"
        package.mkdir()
        (package / "__init__.py").write_text(textwrap.dedent(cupy_source), encoding="utf-8")
    script = f"{prelude}\nfrom minigrad.device import cuda_status\nfor part in cuda_status(): print(part)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    run = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    count, reason = run.stdout.split("\n", 1)
    return int(count), reason.removesuffix("\n")


def test_without_cupy_the_message_names_the_extras(tmp_path):
    count, reason = status_in_a_new_process(tmp_path, NO_CUPY)
    assert count == 0
    assert reason.startswith("CuPy is not installed")
    assert "pip install -e '.[cuda12]'" in reason
    assert ".[cuda13]" in reason
    assert "\n" not in reason


def test_a_usable_gpu_is_counted(tmp_path):
    assert status_in_a_new_process(tmp_path, cupy_source=FAKE_CUPY.format(**WORKING)) == (1, "")


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (
            {"count": "raise CUDARuntimeError('cudaErrorInsufficientDriver: too old')"},
            "cudaErrorInsufficientDriver: too old",
        ),
        ({"count": "return 0"}, "the driver reports no device"),
        ({"ones": "raise CUDARuntimeError('cudaErrorMemoryAllocation: out of memory')"}, "out of memory"),
    ],
)
def test_without_a_gpu_the_message_gives_the_runtimes_reason(tmp_path, broken, reason):
    count, message = status_in_a_new_process(tmp_path, cupy_source=FAKE_CUPY.format(**WORKING | broken))
    assert count == 0
    assert message.startswith("CuPy is installed, but there is no usable GPU: ")
    assert reason in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("broken", "library"),
    [
        (
            {"matmul": "raise ImportError('libcublas.so.12: cannot open shared object file')"},
            "libcublas.so.12",
        ),
        (
            {"ones": "raise RuntimeError('Failure finding libnvrtc.so.12:\\\\nNo such file')"},
            "libnvrtc.so.12",
        ),
        ({"ones": "raise OSError('libnvrtc-builtins.so')"}, "libnvrtc-builtins.so"),
        ({"ones": "raise CompileException('cannot open source file cuda_fp16.h')"}, "cuda_fp16.h"),
    ],
)
def test_without_a_cuda_library_the_message_names_it(tmp_path, broken, library):
    count, message = status_in_a_new_process(tmp_path, cupy_source=FAKE_CUPY.format(**WORKING | broken))
    assert count == 0
    assert message.startswith("CuPy is installed, but a library it needs is missing: ")
    assert library in message
    assert ".[cuda12]" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("source", "library"),
    [
        ("import fastrlock_of_no_distribution", "fastrlock_of_no_distribution"),
        (
            """
            try:
                raise ImportError("libcuda.so.1: cannot open shared object file")
            except ImportError as exc:
                raise ImportError("=====\\nFailed to import CuPy.\\n=====") from exc
            """,
            "missing: libcuda.so.1: cannot open",
        ),
    ],
)
def test_a_cupy_that_cannot_be_loaded(tmp_path, source, library):
    count, message = status_in_a_new_process(tmp_path, cupy_source=source)
    assert count == 0
    assert library in message
    assert "a library it needs is missing" in message


def test_importing_minigrad_imports_no_cupy(tmp_path):
    package = tmp_path / "cupy.py"
    package.write_text("raise RuntimeError('imported')", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    script = "import minigrad, minigrad.device as d; d.to_device(d.asarray_on('cpu', [1]), 'cpu')"
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=60)
