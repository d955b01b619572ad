"""PyTorch's weights by their names, there and back; those that do not fit change nothing."""


import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad.checkpoint import CheckpointError, load_tensors

from transformer import MultiHeadAttention, Transformer, TransformerConfig
from transformer.interop import BARE, ModelNames, load_pytorch, pytorch_names, save_pytorch, to_pytorch
from transformer.model import DecoderLayer, EncoderLayer


def make(**changes):
    options = {"d_model": 4, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 2, "d_ff": 3,
               "norm": "post", "final_norm": True, "output_bias": True, "positions": "learned", "max_length": 5}
    return Transformer(TransformerConfig(7, 7, **{**options, **changes}))


def snapshot(module):
    return {name: np.array(tensor.to("cpu").numpy()) for name, tensor in module.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def arrays(state):
    return {name: tensor.numpy() for name, tensor in state.items()}


# --- There and back -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [
    {}, {"bias": False, "norm_bias": False, "final_norm": False}, {"tie_output": True, "output_bias": False},
    {"tie_output": True, "output_bias": False, "share_embeddings": True}, {"share_embeddings": True},
    {"positions": "sinusoidal", "num_encoder_layers": 0},
], ids=str)
def test_a_whole_model_comes_back_bit_for_bit(options, tmp_path, device):
    model, other = make(**options).to(device), make(**options).to(device)
    assert not same(snapshot(model), snapshot(other))
    save_pytorch(tmp_path / "model.safetensors", model, prefix="module")
    load_pytorch(other, tmp_path / "model.safetensors", prefix="module.")
    assert same(snapshot(model), snapshot(other))
    _, metadata = load_tensors(tmp_path / "model.safetensors")
    assert metadata == {"format": "pt"}


def test_to_pytorch_gives_copies():
    module = MultiHeadAttention(4, 2)
    before = snapshot(module)
    for tensor in to_pytorch(module).values():
        assert not tensor.requires_grad
        tensor.copy_(np.zeros(tensor.shape, np.float32))
    assert same(snapshot(module), before)


def test_a_part_is_loaded_by_its_prefix():
    model = make()
    state = to_pytorch(model)
    layer = DecoderLayer(model.config)
    load_pytorch(layer, state, prefix="transformer.decoder.layers.1")
    assert same(snapshot(layer), snapshot(model.decoder.layers[1]))


@pytest.mark.parametrize("bare", [True, False], ids=["a bare transformer", "a stack"])
def test_what_stands_around_the_layers_is_left_alone(bare):
    model, other = make(), make()
    before = snapshot(other)
    if bare:
        load_pytorch(other, to_pytorch(model, names=BARE), names=BARE)
    else:
        load_pytorch(other.encoder, to_pytorch(model.encoder))
    after, given = snapshot(other), snapshot(model)
    for name, array in after.items():
        loaded = (".layers." in name or ".norm." in name) and (bare or name.startswith("encoder"))
        assert np.array_equal(array, (given if loaded else before)[name]), name


def test_a_layer_without_cross_attention_has_the_names_of_an_encoder_layer():
    """PyTorch has no other layer for a decoder without encoder."""
    sizes = {"d_model": 4, "num_heads": 2, "d_ff": 3}
    assert pytorch_names(DecoderLayer(**sizes, cross_attention=False)) == pytorch_names(EncoderLayer(**sizes))


def test_layers_of_their_own():
    for layer, other in [(nn.Linear(3, 2), nn.Linear(3, 2)), (nn.Embedding(4, 2), nn.Embedding(4, 2))]:
        load_pytorch(other, to_pytorch(layer, "a.b"), "a.b")
        assert same(snapshot(layer), snapshot(other))
    assert [pair.theirs for pair in pytorch_names(nn.LayerNorm(3))] == ["weight", "bias"]


def test_one_layer_for_source_and_target():
    names = ModelNames(source_embedding="tokens", target_embedding="tokens", source_positions="places",
                       target_positions="places")
    shared = make(share_embeddings=True)
    shared.decoder.embedding.positions.table.copy_(shared.encoder.embedding.positions.table.numpy())
    state = to_pytorch(shared, names=names)
    assert {"tokens.weight", "places.weight"} <= state.keys()
    apart = make()
    load_pytorch(apart, state, names=names)
    for stack in (apart.encoder, apart.decoder):
        assert np.array_equal(stack.embedding.table.weight.numpy(), shared.encoder.embedding.table.weight.numpy())
    apart.decoder.embedding.table.weight[0] = 9.0
    with pytest.raises(ValueError, match=r"two parameters that differ would both be called tokens\.weight"):
        to_pytorch(apart, names=names)


# --- What does not fit --------------------------------------------------------------------------------------


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
    load_pytorch(other, state, rename={"positional_encoding.pe": None})
    assert same(snapshot(model), snapshot(other))


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
    for function in (pytorch_names, to_pytorch):
        with pytest.raises(TypeError, match="module of minigrad, got a dict"):
            function({})
    with pytest.raises(TypeError, match=r"names .* MultiHeadAttention"):
        to_pytorch(module, names=BARE)
    with pytest.raises(TypeError, match=r"in_proj_bias .* list"):
        load_pytorch(module, {**to_pytorch(module), "in_proj_bias": [0.0] * 12})
    for arguments in (("weights.safetensors", module), (module, module)):
        with pytest.raises(TypeError, match=r"str|MultiHeadAttention"):
            load_pytorch(*arguments)
    (tmp_path / "model.pt").write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(CheckpointError, match=r"model\.pt"):
        load_pytorch(module, tmp_path / "model.pt")


def test_loading_counts_as_a_change():
    """A graph that has saved the old weights says so, as after load_state_dict."""
    module = MultiHeadAttention(4, 2)
    state = to_pytorch(MultiHeadAttention(4, 2))
    x = Tensor(np.ones((1, 2, 4), np.float32), requires_grad=True)
    loss = module(x, x, x).sum()
    load_pytorch(module, state)
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()
