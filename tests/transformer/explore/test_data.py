"""What the page is given: every array comes back as it was, and is the trace's."""

import json

import numpy as np
import pytest

import minigrad as mg

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from tests.transformer.traces import KINDS, NAMES, decode_array, made, traced
from transformer import MultiHeadAttention, trace
from transformer.explore.checks import Check
from transformer.explore.data import attention_data, encode_array, sides
from transformer.explore.page import embedded_json

SPECIAL = {"float64": [0.0, -0.0, 1 / 3, 5e-324, 1.7e308, np.inf, -np.inf, np.nan],
           "float32": [0.0, -0.0, 1 / 3, 1e-45, 3.4e38, np.inf, -np.inf, np.nan], "uint8": [0, 1, 255, 3, 0, 7, 8, 9]}


def decoded(entry):
    """The JSON with every array in it decoded."""
    if isinstance(entry, dict):
        return decode_array(entry) if "dtype" in entry else {name: decoded(value) for name, value in entry.items()}
    return [decoded(value) for value in entry] if isinstance(entry, list) else entry


def written(attention, checks=(), history=()):
    """Through JSON text and back."""
    return decoded(json.loads(embedded_json(attention_data(attention, dict(checks), history))))


@pytest.mark.parametrize("dtype", SPECIAL)
@pytest.mark.parametrize("shape", [(8,), (2, 1, 4)])
def test_an_array_comes_back_bit_by_bit(dtype, shape):
    array = np.array(SPECIAL[dtype], dtype).reshape(shape)
    for given in (array, np.asfortranarray(array), array.astype(array.dtype.newbyteorder(">"))):
        entry = json.loads(json.dumps(encode_array(given, dtype)))
        back = decode_array(entry)
        assert (back.shape, back.dtype) == (array.shape, np.dtype(dtype))
        assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_data_are_the_numbers_of_the_trace(norm, name):
    """All of them, to the last bit."""
    t, _ = traced(made(norm=norm))
    attention = t[name]
    data = written(attention, {"Q": [Check(1.5, 1.25, 0.2), Check(0.0, float("nan"), float("inf"))]})
    same = {"x": attention.query_input, "g": attention.gradient("output")}
    if attention.kind == "cross":
        same["m"] = attention.key_input
    else:
        assert data["m"] is None
    for key, tensor in same.items():
        np.testing.assert_array_equal(data[key], tensor.numpy(), strict=True)
    for key in ("query", "key", "value", "output"):
        linear = getattr(attention.module, key)
        np.testing.assert_array_equal(data["weights"][key]["weight"], linear.weight.numpy())
        np.testing.assert_array_equal(data["weights"][key]["bias"], linear.bias.numpy())
        assert data["weights"][key]["weight"].dtype == np.float32  # drawn so, and exactly representable
    np.testing.assert_array_equal(np.broadcast_to(data["mask"], attention.mask.shape), attention.mask)
    assert data["mask"].shape[1] == 1
    np.testing.assert_array_equal(data["dropped"], attention.dropped)
    residual, traced_residual = data["residual"], attention.residual
    assert (residual["norm"], residual["eps"]) == (norm, 1e-5)
    for key, tensor in (("stream", traced_residual.stream), ("gradStream", traced_residual.stream.grad),
                        ("gradResult", traced_residual.result.grad), ("weight", traced_residual.module.norm.weight)):
        np.testing.assert_array_equal(residual[key], tensor.numpy())
    assert (data["name"], data["kind"], data["numHeads"], data["p"]) == (name, NAMES[name], 2, 0.3)
    assert data["scale"] == 0.5
    assert sides(attention) == (data["queries"], data["keys"]) == {
        "encoder self": ("source", "source"), "decoder self": ("target", "target"),
        "cross": ("target", "source")}[attention.kind]
    assert data["layer"] == int(name.split(".")[2])
    assert data["checks"] == {"Q": [{"analytic": 1.5, "numeric": 1.25, "error": 0.2},
                                    {"analytic": 0.0, "numeric": None, "error": None}]}


def test_weights_that_float32_cannot_hold_stay_in_float64():
    model = tiny_model()
    weight = model.encoder.layers[0].self_attention.query.weight
    weight.copy_(weight.numpy() * (1 + 1e-12))
    with trace(model) as t:
        model.loss(SOURCE, LABELS).backward()
    data = written(t["encoder.layers.0.self_attention"])["weights"]["query"]["weight"]
    assert data.dtype == np.float64
    np.testing.assert_array_equal(data, weight.numpy())


def test_an_attention_on_its_own():
    """Without mask, dropout, biases and residual; a memory is the source."""
    with mg.random.fork(2):
        attention = MultiHeadAttention(8, 4, bias=False)
    x, memory = (mg.Tensor(np.random.default_rng(seed).standard_normal((2, 3 + seed, 8)), "float32") for seed in (0, 1))
    for given, kind, expected in (((x, x, x), "encoder self", "source"), ((x, memory, memory), "cross", "target")):
        with trace(attention) as t:
            attention(*given).sum().backward()
        data = written(t["MultiHeadAttention"])
        assert (data["kind"], data["queries"], data["layer"]) == (kind, expected, 0)
        assert [data[key] for key in ("mask", "dropped", "residual")] == [None] * 3
        assert all(weights["bias"] is None for weights in data["weights"].values())
        np.testing.assert_array_equal(data["x"], x.numpy())
