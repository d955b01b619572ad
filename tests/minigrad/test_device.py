"""Device names, transfers, namespaces, writing into arrays; and whether a GPU can be used."""

import os
import re
import subprocess
import sys
import textwrap
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minigrad.device import DeviceError, asarray_on, cuda_status, devices, xp
from minigrad.device.memory import pool_use
from minigrad.device.sums import add_at


def test_device_names_are_canonical_and_others_refused():
    names = ["cpu", "cuda", "cuda:0", "cuda:12"]
    assert [devices.parse_device(name) for name in names] == ["cpu", "cuda:0", "cuda:0", "cuda:12"]
    for name in ("gpu", "cuda:x", "cuda:-1", "cuda:", "CPU", "cpu:0", "cuda:01", "cuda:1 ", "cuda:٣"):
        with pytest.raises(ValueError, match=f"{name!r}; use 'cpu', 'cuda' or 'cuda:N'"):
            devices.parse_device(name)


def test_the_round_trip_keeps_values_and_dtype(device):
    host = np.arange(6, dtype=np.float32).reshape(2, 3).T
    there = devices.to_device(host, device)
    assert (devices.device_of(there), devices.is_host(there)) == (device, device == "cpu")
    assert xp(there) is devices.module_for(device)
    assert devices.to_device(there, device) is asarray_on(device, there) is asarray_on(device, there, "f4") is there
    np.testing.assert_array_equal(devices.to_numpy(there), host, strict=True)


def test_whole_numbers_are_added_once_for_each_occurrence(device):
    array = asarray_on(device, np.ones(3, np.int64))
    add_at(array, asarray_on(device, [2, 0, 2]), asarray_on(device, [1, 3, -5]))
    assert devices.to_numpy(array).tolist() == [4, 1, -3]


# --- Whether a GPU can be used: what is missing is told apart, and named with its remedy


def test_a_gpu_that_does_not_exist(stand_in):
    with pytest.raises(DeviceError, match=r"no cuda:2; this machine has 2 \(cuda:0 to cuda:1\)"):
        devices.module_for("cuda:2")
    with pytest.raises(DeviceError, match="no cuda:9"):
        devices.to_device(np.zeros(2), "cuda:9")
    assert cuda_status() == (2, "")
    assert devices.module_for("cuda:1") is stand_in.cupy


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


EXTRAS, MISSING = "minigrad-transformer[cuda12]", "CuPy is installed, but a library it needs is missing: "
NO_GPU = "CuPy is installed, but there is no usable GPU: "
BROKEN = {  # how the message begins, and what else it says
    "nothing": ({}, "", ""),
    "an old driver": ({"count": CUDARuntimeError("cudaErrorInsufficientDriver: too old")}, NO_GPU, "Driver: too old"),
    "no device": ({"count": 0}, NO_GPU, "the driver reports no device"),
    "cublas": ({"product": ImportError("libcublas.so.12: cannot open")}, MISSING, f"libcublas.so.12.*{EXTRAS}"),
    "nvrtc": ({"ones": RuntimeError("Failure finding libnvrtc.so.12:\nNo such")}, MISSING, f"libnvrtc.so.12.*{EXTRAS}"),
    "a header": ({"ones": CompileException("cannot open cuda_fp16.h")}, MISSING, f"cuda_fp16.h.*{EXTRAS}"),
    "CuPy": (None, "CuPy is not installed", EXTRAS),
}


@pytest.mark.parametrize("missing", BROKEN)
def test_what_is_missing_for_a_gpu_is_named_with_its_remedy(missing, monkeypatch):
    broken, beginning, said = BROKEN[missing]
    monkeypatch.setattr(devices, "_cuda_module", None)
    monkeypatch.setitem(sys.modules, "cupy", None if broken is None else fake_cupy(**broken))
    count, message = cuda_status()
    assert count == (missing == "nothing")
    assert message.startswith(beginning)
    assert re.search(said.replace("[", r"\["), message)  # in one line
    assert bool(message) != count


def test_a_cupy_that_cannot_be_loaded(monkeypatch, tmp_path):
    """What its banner hides is the reason."""
    source = """if True:
        try:
            raise ImportError("libcuda.so.1: cannot open shared object file")
        except ImportError as error:
            raise ImportError("=====\\nFailed to import CuPy.\\n=====") from error
    """
    (tmp_path / "cupy.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(devices, "_cuda_module", None)
    count, message = cuda_status()
    assert count == 0
    assert "a library it needs is missing: libcuda.so.1: cannot open" in message


ROOT = Path(__file__).parents[2]


def in_a_new_process(source, path=ROOT):
    """What a script prints that finds a folder before the installed packages."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [path, ROOT])), "PYTHONHASHSEED": "random"}
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], env=environment, capture_output=True,
                         text=True, check=True, timeout=60)
    return run.stdout.splitlines()


def test_importing_minigrad_imports_no_cupy(tmp_path):
    """It is where CuPy is installed, and may have no driver."""
    (tmp_path / "cupy.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    in_a_new_process("import transformer; from minigrad import Tensor as T; T(T([1.0]).to('cpu')).sum()", tmp_path)


# --- Memory of a GPU


@pytest.mark.parametrize("index", [0, 1])
def test_memory_in_use_and_held(stand_in, index):
    name, other = f"cuda:{index}", pool_use(f"cuda:{1 - index}")
    used, held = pool_use(name)
    array = asarray_on(name, np.zeros(1000, np.float32))
    assert pool_use(name) == (used + 4096, held + 4096)
    del array
    assert pool_use(name) == (used, held + 4096)  # the pool keeps it
    assert pool_use(f"cuda:{1 - index}") == other
    assert not stand_in.synchronizations
