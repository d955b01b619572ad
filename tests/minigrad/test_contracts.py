"""Promises of the engine that have no other home; docs/contracts.md lists every promise with its test."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import host

ROOT = Path(__file__).parents[2]


def leaf(values, device="cpu"):
    return Tensor(np.array(values, np.float64), device=device, requires_grad=True)


def test_accumulation_never_writes_into_a_view_that_a_rule_returned(device):
    """CuPy has no read-only arrays: a gradient added into a broadcast view would change all of its elements."""
    x = leaf([1.0, 2.0, 3.0], device)
    (x.sum() + (x * 10).sum() + x[1] * 100).backward()
    np.testing.assert_array_equal(host(x.grad), [11, 111, 11])
    x.grad = None
    start = Tensor(np.ones(3), device=device)
    (mg.broadcast_to(x, (2, 3)).sum(axis=0) + x * 2 + mg.flip(x, 0)).backward(start)
    np.testing.assert_array_equal(host(x.grad), [5, 5, 5])
    np.testing.assert_array_equal(host(start), [1, 1, 1])


def test_only_grad_takes_create_graph():
    """In ``backward`` it would put a graph into ``.grad``, which is a cycle."""
    x = leaf([3.0])
    with pytest.raises(TypeError, match="create_graph"):
        (x * x).sum().backward(create_graph=True)
    assert x.grad is None


def test_writing_into_data_is_the_unchecked_escape():
    """The array itself can be changed under a graph; then the gradient is that of the new values."""
    x, c = leaf([1.0, 2.0]), Tensor([3.0, 4.0])
    y = (x * c).sum()
    c.data[...] = 5.0
    y.backward()
    np.testing.assert_array_equal(host(x.grad), [5, 5])


# --- Randomness, from one process to another ----------------------------------------------------------------

TRAINING = """
    import zlib
    import numpy as np
    import minigrad as mg
    from minigrad import functional as F, nn, optim

    mg.manual_seed(3)
    model = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(16), nn.Linear(16, 3))
    optimizer = optim.AdamW(list(model.parameters()), lr=0.01)
    x, labels = np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32), np.arange(8) % 3
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(mg.Tensor(x)), mg.Tensor(labels)).backward()
        optimizer.step()
    print(zlib.crc32(b"".join(p.numpy().tobytes() for p in model.parameters())))
"""


def in_a_new_process(source, *paths):
    """What a script prints that finds `paths` before the installed packages."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*paths, ROOT])), "PYTHONHASHSEED": "random"}
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], env=environment, capture_output=True,
                         text=True, check=True, timeout=60)
    return run.stdout.splitlines()


def test_a_seed_makes_every_run_the_same_bit_for_bit(capsys):
    with mg.random.fork():
        exec(textwrap.dedent(TRAINING), {})
    assert capsys.readouterr().out.splitlines() == in_a_new_process(TRAINING)


# --- A machine with CuPy and without a GPU ------------------------------------------------------------------

NO_DRIVER = """
    import types
    class CUDARuntimeError(RuntimeError): pass
    def no_driver(*args, **kwargs):
        raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return no_driver
    class ndarray: pass
    class CompileException(Exception): pass
    cuda = types.SimpleNamespace(Device=no_driver, compiler=types.SimpleNamespace(CompileException=CompileException),
        runtime=types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError, getDeviceCount=no_driver))
"""
ON_THE_CPU = """
    import minigrad as mg
    import transformer
    x = mg.Tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    print(x.grad.tolist())
    try:
        mg.Tensor([1.0], device="cuda")
    except mg.device.DeviceError as error:
        print(error)
"""


def test_a_cupy_that_has_no_gpu_does_not_stop_the_import(tmp_path):
    (tmp_path / "cupy.py").write_text(textwrap.dedent(NO_DRIVER), encoding="utf-8")
    gradient, error = in_a_new_process(ON_THE_CPU, tmp_path)
    assert gradient == "[2.0, 4.0]"
    assert "no usable GPU" in error
    assert "cudaErrorNoDevice" in error
