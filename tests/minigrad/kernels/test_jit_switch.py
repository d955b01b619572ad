"""The switch: where kernels run, and what the rest of the engine sees of them."""

import asyncio
import contextvars
import subprocess
import sys
import threading

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, inspect, jit, kernels, optim
from minigrad import functional as F
from minigrad.func.checkpointing import checkpoint
from minigrad.kernels import is_jit_on

from tests.minigrad.kernels.kernel_cases import CASES, operands

pytest.importorskip("numba", reason="the extra jit is not installed")


def leaf(*shape, dtype=np.float32, seed=0):
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(dtype), requires_grad=True)


def is_compiled(out):
    """Whether a compiled body recorded `out`."""
    bodies = [body for body in out._node.primitive.bodies if body.kind == "jit"]
    return any(out._node.plan is plan for body in bodies for plan in body.plans.values())


def test_it_is_off_until_asked_for():
    @jit()
    def decorated(x):
        return F.softmax(x)

    x = leaf(3, 4)
    assert not is_compiled(F.softmax(x))
    with jit():
        assert is_compiled(F.softmax(x))
        with jit(False):
            assert not is_compiled(F.softmax(x))
        assert is_compiled(F.softmax(x))
    assert not is_compiled(F.softmax(x))
    assert is_compiled(decorated(x))
    assert not is_jit_on()


def test_tasks_have_their_own():
    async def inside():
        with jit():
            await asyncio.sleep(0)
            return is_compiled(F.softmax(leaf(3, 4)))

    async def outside():
        await asyncio.sleep(0)
        return is_compiled(F.softmax(leaf(3, 4)))

    async def both():
        return await asyncio.gather(inside(), outside())

    assert asyncio.run(both()) == [True, False]


def test_a_backward_outside_runs_the_rules_of_what_was_recorded():
    x, gradient = leaf(4, 9), np.ones((4, 9), np.float32)
    with jit():
        out = F.relu(x)
    assert is_compiled(out)
    out.backward(gradient)
    np.testing.assert_array_equal(x.grad.numpy(), x.numpy() > 0)


def test_a_checkpoint_is_computed_again_as_the_first_time():
    x = leaf(5, 7)
    recorded = []

    def function(x):
        out = F.softmax(x)
        recorded.append(is_compiled(out) if out._node else None)
        return out * out

    with jit():
        out = checkpoint(function, x)
    out.sum().backward()
    with jit():
        expected = minigrad.grad((F.softmax(x) ** 2).sum(), [x])[0]
    assert recorded == [True, True]
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy(), rtol=1e-6)
    recorded.clear()
    out = checkpoint(function, x)
    with jit():
        out.sum().backward()
    assert recorded == [False, False]


def test_threads_at_once_compute_what_one_does():
    case = next(case for case in CASES if case.name == "attention with dropout")
    expected: list[np.ndarray] = []
    results: list[list[np.ndarray]] = []

    def compute():
        inputs = operands(case, np.float32)
        out = case.function(*inputs)
        assert is_compiled(out)
        out.sum().backward()
        return [out.numpy(), *(x.grad.numpy() for x in inputs)]

    with jit():
        expected = compute()
        threads = [threading.Thread(target=contextvars.copy_context().run,
                                    args=(lambda: results.extend(compute() for _ in range(20)),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 80
    for result in results:
        for ours, one in zip(result, expected, strict=True):
            np.testing.assert_array_equal(ours, one)


def test_hooks_profiles_and_anomalies_are_as_ever():
    x = leaf(3, 4)
    with jit(), minigrad.profile() as profile:
        out = F.softmax(F.relu(x))
    assert "softmax" in str(profile)
    assert "relu" in str(profile)
    out.register_hook(lambda g: g * 2)
    (gradient,) = minigrad.grad(out, [x], np.eye(3, 4, dtype=np.float32))
    (expected,) = minigrad.grad(F.softmax(F.relu(x)), [x], 2 * np.eye(3, 4, dtype=np.float32))
    np.testing.assert_allclose(gradient.numpy(), expected.numpy(), atol=1e-7)
    wrong = Tensor(np.array([[0.0, np.inf]], np.float32), requires_grad=True)
    with jit(), inspect.detect_anomaly(), pytest.raises(inspect.AnomalyError, match="softmax"):
        F.softmax(wrong)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [
    lambda p: optim.Adam(p),
    lambda p: optim.Adam(p, weight_decay=0.1),
    lambda p: optim.AdamW(p, lr=0.1, betas=(0.5, 0.9), eps=1e-3, weight_decay=0.1),
], ids=["Adam", "Adam with decay", "AdamW"])
def test_adam(make, dtype):
    def train():
        parameters = [leaf(70_001, dtype=dtype), leaf(13, 5, dtype=dtype), leaf(1, dtype=dtype)]
        optimizer = make(parameters)
        for step in range(4):
            for p in parameters:
                p.grad = Tensor(np.random.default_rng(step).standard_normal(p.shape).astype(dtype))
            optimizer.step()
        return [p.numpy() for p in parameters], optimizer.state_dict()["state"]

    theirs, their_state = train()
    with jit():
        ours, state = train()
    rtol = 1e-5 if dtype == np.float32 else 1e-13
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 10)
    for i, entry in state.items():
        for name in ("exp_avg", "exp_avg_sq"):
            np.testing.assert_allclose(entry[name], their_state[i][name], rtol=rtol, atol=rtol / 100)


def test_adam_of_float16_has_its_moments_in_float32():
    p = leaf(5, dtype=np.float16)
    p.grad = Tensor(np.ones(5, np.float16))
    with jit():
        optimizer = optim.Adam([p])
        optimizer.step()
    assert optimizer.state_dict()["state"][0]["exp_avg"].dtype == np.float32
    assert p.dtype == np.float16


def test_compile_time_counts_kernels():
    with jit():
        F.softmax(leaf(3, 4))
    spent = kernels.compile_time()
    assert spent.seconds > 0
    assert spent.compiled + spent.loaded == len(kernels.made_ready) >= 1


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_all_kernels_can_be_made_ready_at_once(capsys):
    from minigrad.kernels import __main__
    from minigrad.kernels.compiled.kernel import KERNELS

    __main__.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["float32", "float64"]
    assert all(len(kernel._compiled) == 2 for kernel in KERNELS)


def test_importing_minigrad_imports_no_compiler():
    assert run("import sys, minigrad; minigrad.jit(False); sys.exit('numba' in sys.modules)").returncode == 0


@pytest.mark.parametrize("code", ["import minigrad\nminigrad.jit()",
                                  "import runpy; runpy.run_module('minigrad.kernels', run_name='__main__')"])
def test_without_numba_the_error_names_the_extra(code):
    done = run(f"import sys; sys.modules['numba'] = None\n{code}")
    assert done.returncode == (2 if "runpy" in code else 1)
    assert "needs the package 'numba'" in done.stderr.splitlines()[-1]
    assert "[jit]" in done.stderr.splitlines()[-1]
