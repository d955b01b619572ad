"""Every CUDA kernel is held to the definition of its operation, on a GPU; and graphs to what they record."""

import contextlib

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, kernels, optim
from minigrad import functional as F
from minigrad.device import asarray_on, to_numpy
from minigrad.device.memory import pool_use
from minigrad.functional.dropout import dropout_with_mask
from minigrad.kernels.cuda.graph import Recorded

from tests.minigrad.kernels.test_bodies import ROWS, Row, arguments, close
from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer.training.parallel_gradients import ParallelGradients

SHAPES = (5, 33), (2, 3, 8), (1, 5000), (5000, 2), (0, 3)
MORE = [
    *[Row(F.linear, f"x({n}, 5), x(70, 5), x(70)") for n in (0, 1, 700, 5000)],
    Row(F.linear, "x(4, 3, 2, 5).swapaxes(0, 2), x(5, 70).T, x(70)"),
    Row(F.linear, "x(3, 5), x(70, 5), None"),
    Row(F.layer_norm, "x(4, 6), x(6, 2)[:, 0], x(12)[::2], 1"),
    *[Row(dropout_with_mask, f"x(*{s}), booleans(*{s}), 0.3") for s in SHAPES],
]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", [*ROWS, *MORE], ids=lambda row: f"{row.op.name} {row.call}")
def test_a_kernel_computes_what_the_definition_does(row, dtype):
    """Value, and gradients of all inputs at once and of each alone."""
    op, args = row.op, arguments(row, dtype)
    places = [i for i in op.positions if i < len(args) and args[i] is not None]

    def results(device, wanted):
        tensors = [Tensor(a, device=device, requires_grad=i in wanted) if i in op.positions and a is not None else a
                   for i, a in enumerate(args)]
        out = op(*tensors)
        start = np.random.default_rng(7).standard_normal((*out.shape, 2))[..., 0].astype(dtype)
        gradients = mg.grad(out, [tensors[i] for i in wanted], Tensor(start, device=device))
        return out._node, [x.numpy() for x in (out, *gradients)]

    for wanted in [places, *([i] for i in places if len(places) > 1)]:
        with np.errstate(invalid="ignore"), kernels.only_definitions():
            expected = results("cpu", wanted)[1]
        node, found = results("cuda", wanted)
        assert node.plan in op.bodies["cupy"].plans.values()
        for ours, theirs in zip(found, expected, strict=True):
            close(ours, theirs)


# ------------------------------------------------------------------ graphs


def smooth(x, y):
    return [F.linear(Tensor(x), Tensor(y)).data, F.dropout(Tensor(x), 0.5).data]


def waits(x, y):
    return [x * float(y.sum())]


def multiplies(x, y):
    return [x @ y]


def sends(x, y):
    return [x + asarray_on("cuda", np.arange(len(y), dtype="f"))]


@pytest.mark.gpu
@pytest.mark.parametrize(("function", "is_recorded"), [(smooth, True), (waits, False), (multiplies, False),
                                                        (sends, False)])
def test_a_recorded_function_gives_what_it_gives_when_it_is_run(function, is_recorded):
    """With arguments of two shapes in turn; masks go on where the last ones ended."""
    numbers = np.random.default_rng(5)
    pairs = [[asarray_on("cuda", numbers.standard_normal((n, n)).astype("f")) for _ in range(2)] for n in (3, 64)] * 4
    found = []
    for run in (function, Recorded(function)):
        mg.manual_seed(2)
        mg.random.set_step(3)
        found.append([[to_numpy(out) for out in run(*pair)] for pair in pairs])
        found[-1].append([mg.random.get_state()["call"]])
    for plain, recorded in zip(*found, strict=True):
        for expected, out in zip(plain, recorded, strict=True):
            np.testing.assert_array_equal(out, expected)
    assert [graph is not function for graph in run.graphs.values()] == [is_recorded] * 2
    assert pool_use("cuda")[1] >= run.recorder.pool.total_bytes() >= is_recorded


@pytest.mark.gpu
def test_a_recorded_step_of_training_is_the_step():
    """Batches of two shapes, gradients that are added up, and parameters that move to other memory."""
    def losses(watched):
        mg.manual_seed(3)
        model = tiny_model(np.float64, "cuda", dropout=0.2)
        optimizer, found = optim.AdamW(model.parameters(), lr=0.01), []
        with ParallelGradients(model, 1) as gradients, (mg.profile() if watched else contextlib.nullcontext()):
            for step in range(16):
                mg.random.set_step(step)
                optimizer.zero_grad()
                for source in (SOURCE, SOURCE[:, 1:])[:1 + step % 2]:
                    found.append(float(gradients(source, LABELS, 0.1, 7.0)))
                optim.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                if step == 10:
                    model.load_state_dict({name: t + 0.01 for name, t in model.state_dict().items()})
                    model.projection.weight.data = model.projection.weight.data.copy()
        return found

    np.testing.assert_allclose(losses(False), losses(True), rtol=1e-9)
