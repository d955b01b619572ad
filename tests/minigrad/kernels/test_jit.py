"""Compiled kernels: where they run, what the rest of the engine sees of them, and the NumPy bodies' values."""

import contextvars
import math
import subprocess
import sys
import threading

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, grad, jit, kernels, optim
from minigrad import functional as F
from minigrad.func.checkpointing import checkpoint
from minigrad.functional.attention import attention, attention_of_heads
from minigrad.functional.dropout import dropout_with_mask
from minigrad.functional.gelu import gelu_tanh
from minigrad.functional.loss import row_losses
from minigrad.functional.more.linear_cross_entropy import linear_losses
from minigrad.functional.normalization import layer_norm
from minigrad.functional.softmax import log_softmax, softmax
from minigrad.kernels import is_jit_on
from minigrad.ops import relu

pytest.importorskip("numba", reason="the extra jit is not installed")


def compiled(output):
    """The operations at or below an output that a compiled body recorded."""
    found, stack = set(), [output._node]
    while stack:
        node = stack.pop()
        plans = [plan for body in node.primitive.bodies if body.kind == "jit" for plan in body.plans.values()]
        if any(node.plan is plan for plan in plans):
            found.add(node.primitive)
        stack += [parent for parent in node.parents if hasattr(parent, "primitive")]
    return found


def leaf(values, dtype=np.float32):
    return Tensor(np.asarray(values, dtype), requires_grad=True)


def random_leaf(*shape, dtype=np.float32):
    return leaf(np.random.default_rng(0).standard_normal(shape), dtype)


# --- The switch --------------------------------------------------------------------------------------


def test_it_is_off_until_asked_for():
    @jit()
    def decorated(x):
        return F.softmax(x)

    x = random_leaf(3, 4)
    assert not compiled(F.softmax(x))
    with jit():
        assert compiled(F.softmax(x))
        with jit(False):
            assert not compiled(F.softmax(x))
        assert compiled(F.softmax(x))
    assert not compiled(F.softmax(x))
    assert compiled(decorated(x))
    assert not is_jit_on()


def test_a_checkpoint_is_computed_again_as_the_first_time():
    x = random_leaf(5, 7)
    recorded = []

    def function(x):
        out = F.softmax(x)
        recorded.append(bool(compiled(out)) if out._node else None)
        return out * out

    with jit():
        out = checkpoint(function, x)
    out.sum().backward()
    assert recorded == [True, True]
    out = checkpoint(function, x)
    with jit():
        out.sum().backward()
    assert recorded == [True, True, False, False]


def test_threads_at_once_compute_what_one_does():
    mask, dropped = (np.random.default_rng(0).random(shape) < 0.7 for shape in ((2, 1, 1, 7), (2, 2, 5, 7)))
    results: list[list[np.ndarray]] = []

    def compute():
        inputs = [random_leaf(*shape) for shape in ((2, 5, 6), (2, 7, 6), (2, 7, 8))]
        out = F.multi_head_attention(*inputs, 2, mask, 0.3, dropped=dropped)
        assert compiled(out)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [
    lambda p: optim.Adam(p, weight_decay=0.1),
    lambda p: optim.AdamW(p, lr=0.1, betas=(0.5, 0.9), eps=1e-3, weight_decay=0.1),
], ids=["Adam", "AdamW"])
def test_adam(make, dtype):
    def train():
        parameters = [random_leaf(70_001, dtype=dtype), random_leaf(13, 5, dtype=dtype), random_leaf(1, dtype=dtype)]
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


def test_compile_time_counts_kernels():
    with jit():
        F.softmax(random_leaf(3, 4))
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


# --- Values ------------------------------------------------------------------------------------------


def test_functions_run_the_kernel_of_their_operation():
    x, w, b, target = random_leaf(5, 33), random_leaf(7, 33), random_leaf(33), np.array([3, 0, -100, 2, 1])
    heads = random_leaf(2, 3, 5, 4)
    with jit():
        for primitive, out in (
                (softmax, F.softmax(x, axis=1)), (log_softmax, F.log_softmax(x)), (layer_norm, F.layer_norm(x, b, b)),
                (relu, F.relu(x)), (gelu_tanh, F.gelu(x, "tanh")), (row_losses, F.cross_entropy(x, target)),
                (dropout_with_mask, F.dropout_with_mask(x, np.ones((5, 33), bool), 0.3)),
                (linear_losses, F.linear_cross_entropy(x, w, target)),
                (attention, F.scaled_dot_product_attention(heads, heads, heads)),
                (attention_of_heads, F.multi_head_attention(heads[0], heads[0], heads[0], 2))):
            assert compiled(out) == {primitive}


def unaligned(shape):
    memory = np.zeros(4 * math.prod(shape) + 1, np.uint8)[1:]
    x = minigrad.from_numpy(memory.view(np.float32).reshape(shape))
    x.requires_grad = True
    return x


@pytest.mark.parametrize("make", [
    lambda: leaf(np.ones((4, 3)), np.float16),
    lambda: leaf(np.ones((4, 0))),
    lambda: leaf(np.arange(12).reshape(3, 4)).T,
    lambda: Tensor(np.ones((3, 4), np.dtype(np.float32).newbyteorder()), requires_grad=True),
    lambda: unaligned((3, 4)),
], ids=["float16", "no columns", "transposed", "swapped bytes", "unaligned"])
def test_other_operands_run_as_numpy(make):
    for function in (F.softmax, F.relu):
        with jit():
            x = make()
            out = function(x)
        assert not compiled(out)
        assert out.dtype == function(x).dtype
        np.testing.assert_array_equal(out.numpy(), function(x).numpy())


def test_what_is_masked_may_be_nan():
    """Neither the output nor a gradient sees a masked key whose score is NaN."""
    query, key, value = (leaf(np.random.default_rng(i).normal(size=(1, 1, 3, 4)), np.float64) for i in range(3))
    mask = np.array([True, True, False])
    with jit():
        clean = F.scaled_dot_product_attention(query, key, value, mask)
        key.data[..., 2, :] = math.nan
        out = F.scaled_dot_product_attention(query, key, value, mask)
    np.testing.assert_array_equal(out.numpy(), clean.numpy())


def test_rows_that_do_not_count_may_be_nan():
    x = leaf(np.random.default_rng(0).normal(size=(3, 5)))
    x.data[1] = math.nan
    with jit():
        out = F.cross_entropy(x, np.array([1, -100, 4]), reduction="none", label_smoothing=0.1)
        (gradient,) = grad(out.sum(), [x])
        assert row_losses in compiled(row_losses(x, np.array([1, 0, 4]), np.array([True, False, True])))
    assert out.numpy()[1] == 0
    np.testing.assert_array_equal(gradient.numpy()[1], 0)
    assert np.isfinite(gradient.numpy()).all()


def test_wrong_operands_never_reach_a_kernel():
    with jit(), pytest.raises(IndexError, match="row_losses"):
        row_losses(leaf(np.ones((2, 3))), np.array([0, 3]), np.array([True, True]))
    with jit(), pytest.raises(ValueError, match="layer_norm"):
        F.layer_norm(leaf(np.ones((3, 4))), leaf(np.ones(5)), leaf(np.ones(5)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_softmax_keeps_its_digits_where_the_scores_are_large(dtype):
    steps = np.arange(20.0).reshape(4, 5)
    large = 2.0 ** (np.finfo(dtype).nmant - 6)  # sums with it are exact, and have but six digits after the point
    with jit():
        shifted = F.log_softmax(leaf(steps + large, dtype))
        plain = F.log_softmax(leaf(steps, dtype))
        losses = F.cross_entropy(leaf(steps + large, dtype), np.array([4, 0, 2, 1]), reduction="none")
    np.testing.assert_allclose(shifted.numpy(), plain.numpy(), rtol=2 * np.finfo(dtype).eps)
    np.testing.assert_allclose(losses.numpy(), -plain.numpy()[range(4), [4, 0, 2, 1]], rtol=2 * np.finfo(dtype).eps)


def test_arrays_alone_run_as_numpy():
    x = np.random.default_rng(0).normal(size=(3, 5))
    theirs = softmax(x)
    with jit():
        np.testing.assert_array_equal(softmax(x), theirs)
