"""detect_anomaly: the operation, the line, the element; silent where infinities are meant."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F
from minigrad.engine.watch import watchers
from minigrad.func import checkpoint
from minigrad.inspect import AnomalyError, detect_anomaly

from tests.minigrad.inspect.programs import training_step
from tests.minigrad.ops.row import function

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, about the same values


def leaf(*values, device="cpu"):
    return Tensor(np.array(values), device=device, requires_grad=True)


def caught(run):
    with pytest.raises(AnomalyError) as info, detect_anomaly():
        run()
    assert watchers() == ()
    return str(info.value)


def test_the_first_nan_of_a_forward(device):
    x = leaf([1.0, 2.0], [-3.0, 4.0], device=device)
    error = caught(lambda: mg.exp(mg.log(x) * 2))  # THE LINE
    for part in ("log: a NaN", "at index (1, 0)", __file__, "THE LINE", "from -3.0 to 4.0"):
        assert part in error, part


def test_infinities_are_caught_where_no_operand_has_one():
    x = leaf(math.inf, 1.0)
    for operation, run in (("log", lambda: mg.log(leaf(0.0))), ("mul", lambda: leaf(1e300) * 1e300),
                                ("astype", lambda: leaf(1e5).astype(np.float16))):
        assert caught(run).startswith(f"{operation}: an infinity")
    assert caught(lambda: x - x).startswith("sub: a NaN")
    nan = caught(lambda: mg.log(leaf(math.inf, -1.0)))
    assert "log: a NaN" in nan
    assert "at index (1,)" in nan  # not that of the infinity
    assert "losses.py" in caught(lambda: F.mse_loss(leaf(1e300), [0.0]))  # the line inside, too
    with detect_anomaly():
        (leaf(math.nan, 1.0) * 2).sum()
        mg.concatenate([x, leaf(1.0)])
        (leaf(1.0) * 2).backward(np.array([np.inf]))  # a gradient that was given


MASK = np.array([[True, False, True], [True, True, False]])


NAMES = {**vars(F), **vars(mg.ops), "MASK": MASK, "np": np, "checkpoint": checkpoint,
         "attend": F.scaled_dot_product_attention}
SILENT = """
    softmax(where(MASK, x, -np.inf), -1)
    max(pad(x, ((0, 0), (1, 1)), value=-np.inf), axis=-1)
    attend(x, x, x, np.array([[True, False], [False, False]]))
    cross_entropy(x * 1000, np.array([0, -100]))
    layer_norm(x * 0.0)
"""


@pytest.mark.parametrize("call", SILENT.strip().splitlines())
@pytest.mark.parametrize("fused", [True, False])
def test_meant_infinities_and_guarded_edges_are_silent(call, fused):
    x = leaf([0.5, -1.0, 2.0], [1.0, 3.0, -2.0])
    with mg.fused(fused), detect_anomaly():
        function(call.strip(), NAMES)(x).sum().backward()


def test_the_rule_at_fault_in_a_backward(device):
    x = leaf(4.0, 0.0, device=device)

    def run():
        y = mg.sqrt(x)  # FORWARD
        (y * 3).sum().backward()

    error = caught(run)
    for part in ("sqrt: an infinity in its gradient for 'x'", "at index (1,)", "FORWARD"):
        assert part in error
    assert x.grad is None  # no gradient half delivered


def test_gradients_of_a_forward_outside_of_the_block():
    @mg.primitive
    def trap(x):
        return x * 1.0

    trap.gradient(x=lambda g: g * math.nan)
    out = (trap(leaf(1.0, 2.0)) * 2).sum()
    error = caught(out.backward)
    assert error.startswith("trap: a NaN in its gradient for 'x'")


def test_an_infinity_that_a_rule_is_given_goes_through_it():
    start = np.array([math.inf])
    with detect_anomaly():
        (leaf(1.0) * 2).backward(start)
    assert caught(lambda: (leaf(1.0) * 0).backward(start)).startswith("mul: a NaN in its gradient for 'x'")


def test_the_module_is_named():
    model, step = training_step()
    model.encoder.layers[0].feed_forward.inner.weight.copy_(np.float32(3e38))  # overflows
    assert "\n    in Transformer.encoder.layers.0.feed_forward.inner\n" in caught(step)


# --- Raw arrays that change before the backward ------------------------------------------------------

# An operand, an index, a mask, what a loss and a layer take: how x and the array are used, and what an error names
USES = """
    x * y                                                   mul: its saved 'y'
    linear(x, y)                                            linear: its saved 'weight'
    where(y, x, 0.0)                                        where: its saved 'condition'
    attend(x, x, x, dropout_p=0.5, dropped=y)               attention: its saved 'dropped'
    checkpoint(lambda x, y: x * y, x, y)                    checkpoint: its saved 'arguments'
    concatenate([x, y]) * 1.0
    x + y
"""


@pytest.mark.parametrize("line", USES.strip().splitlines())
def test_a_raw_array_that_changed_before_the_backward(line, device):
    call, _, named = line.strip().partition("   ")
    values = np.eye(3) > 0 if "where" in call or "dropped" in call else np.eye(3)
    use, named = function(call, NAMES), named.strip()
    array = Tensor(values, device=device).data
    x = Tensor(np.ones((3, 3)), device=device, requires_grad=True)
    with detect_anomaly():
        used = use(x, array).sum()
        used.backward(retain_graph=True)
        with mg.device.on_device_of(array):
            array[...] = ~array if values.dtype == bool else 7.0
        if not named:
            used.backward()
            return
        with pytest.raises(RuntimeError, match=rf"^{named}, of shape \(3, 3\), has"):
            used.backward()


@pytest.mark.parametrize("call", [
    "x[y]", "x.take(y, 0)", "embedding(y, x)", "x.gather(0, y[:, None])", "cross_entropy(x[:2], y)"])
def test_indices_and_target_ids_may_change_at_once(call):
    """They are copied: nothing is to be noticed, since the gradient is right."""
    def gradient(change):
        ids, x = np.array([0, 1]), Tensor(np.arange(9.0).reshape(3, 3), requires_grad=True)
        y = (function(call, NAMES)(x, ids) ** 2).sum()
        ids[...] = 2 if change else ids
        return mg.grad(y, x).numpy()

    assert np.array_equal(gradient(True), gradient(False))
