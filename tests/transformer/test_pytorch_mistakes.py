"""PyTorch's weights that do not fit: every problem is listed, and nothing is changed."""

import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad.checkpoint import CheckpointError

from tests.transformer.pytorch_models import arrays, make, same, snapshot
from transformer import MultiHeadAttention
from transformer.interop import BARE, load_pytorch, to_pytorch


def test_every_problem_is_listed_and_nothing_is_changed():
    model = make()
    before = snapshot(model)
    state = arrays(to_pytorch(make()))
    del state["generator.bias"], state["transformer.encoder.norm.weight"]
    state["generator.extra"] = state["transformer.pe"] = np.zeros(3, np.float32)
    state["target_embedding.weight"] = np.zeros((9, 4), np.float32)
    attention = "transformer.decoder.layers.1.self_attn"
    state[f"{attention}.in_proj_weight"] = np.zeros((4, 12), np.float32)
    state[f"{attention}.in_proj_bias"] = np.zeros(12)
    with pytest.raises(ValueError, match="nothing was changed") as error:
        load_pytorch(model, state)
    for problem in ("missing: transformer.encoder.norm.weight, generator.bias",
                    "unexpected: generator.extra, transformer.pe",
                    f"{attention}.in_proj_weight: shape (4, 12) given, (12, 4) needed",
                    f"{attention}.in_proj_bias: dtype float64 given, float32 needed",
                    "target_embedding.weight: shape (9, 4) given, (7, 4) needed"):
        assert problem in str(error.value)
    assert same(snapshot(model), before)


def test_what_has_no_counterpart_can_be_ignored():
    model, other = make(positions="sinusoidal"), make(positions="sinusoidal")
    state = {**to_pytorch(model), "positional_encoding.pe": np.zeros((5, 1, 4), np.float32)}
    with pytest.raises(ValueError, match=r"unexpected: positional_encoding\.pe"):
        load_pytorch(other, state)
    load_pytorch(other, state, ignore=["positional_encoding.pe"])
    assert same(snapshot(model), snapshot(other))


def test_attention_with_learnt_extra_keys():
    extra = {name: np.zeros((1, 1, 4), np.float32) for name in ("bias_k", "bias_v")}
    with pytest.raises(ValueError, match=r"unexpected: bias_k, bias_v\n.*add_bias_kv=True"):
        load_pytorch(MultiHeadAttention(4, 2), {**to_pytorch(MultiHeadAttention(4, 2)), **extra})


def test_tied_values():
    model = make(tie_output=True, output_bias=False)
    state = arrays(to_pytorch(make(tie_output=True, output_bias=False)))
    state["generator.weight"] = state["generator.weight"] + 1
    with pytest.raises(ValueError, match=r"generator\.weight: differs from target_embedding\.weight"):
        load_pytorch(model, state)
    for left_out in ("generator.weight", "target_embedding.weight"):
        kept = {name: array for name, array in state.items() if name != left_out}
        load_pytorch(model, kept)
        (name,) = {"generator.weight", "target_embedding.weight"} - {left_out}
        assert np.array_equal(model.decoder.embedding.table.weight.numpy(), state[name])
    del kept["generator.weight"]
    with pytest.raises(ValueError, match=r"missing: target_embedding\.weight, generator\.weight"):
        load_pytorch(model, kept)


def test_arguments_of_other_types(tmp_path):
    module = MultiHeadAttention(4, 2)
    with pytest.raises(TypeError, match="not for Dropout"):
        load_pytorch(nn.Dropout(0.5), {})
    with pytest.raises(TypeError, match=r"names .* MultiHeadAttention"):
        to_pytorch(module, names=BARE)
    with pytest.raises(TypeError, match=r"in_proj_bias .* list"):
        load_pytorch(module, {**to_pytorch(module), "in_proj_bias": [0.0] * 12})
    with pytest.raises(TypeError, match=r"load_pytorch\(module, source\); the first .* str$"):
        load_pytorch("weights.safetensors", module)
    with pytest.raises(TypeError, match="got a MultiHeadAttention"):
        load_pytorch(module, module)
    with pytest.raises(FileNotFoundError):
        load_pytorch(module, tmp_path / "nothing.safetensors")
    (tmp_path / "model.pt").write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(CheckpointError, match=r"model\.pt"):
        load_pytorch(module, tmp_path / "model.pt")


def test_values_may_be_anything_with_numpys_protocol():
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __array__(self, dtype=None, copy=None):
            return self.array

    module, other = MultiHeadAttention(4, 2), MultiHeadAttention(4, 2)
    load_pytorch(other, {name: Foreign(t.numpy()) for name, t in to_pytorch(module).items()})
    assert same(snapshot(module), snapshot(other))
    load_pytorch(other, {name: Tensor(t.numpy()) for name, t in to_pytorch(module).items()})


def test_loading_counts_as_a_change():
    """A graph that has saved the old weights says so, as after load_state_dict."""
    module = MultiHeadAttention(4, 2)
    state = to_pytorch(MultiHeadAttention(4, 2))
    x = Tensor(np.ones((1, 2, 4), np.float32), requires_grad=True)
    loss = module(x, x, x).sum()
    load_pytorch(module, state)
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()
