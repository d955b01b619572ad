"""Names of PyTorch's weights, there and back."""

import pkgutil
import re

import numpy as np
import pytest

from minigrad import nn
from minigrad.checkpoint import load_tensors
from minigrad.compat.names import IN_TRANSFORMER

from tests.transformer.pytorch_models import make, same, snapshot
from transformer import MultiHeadAttention, Transformer
from transformer.interop import BARE, ModelNames, load_pytorch, pytorch_names, save_pytorch, to_pytorch
from transformer.interop.names import CHILDREN
from transformer.model import DecoderLayer

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
    load_pytorch(other, tmp_path / "model.safetensors", prefix="module")
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
    with_a_dot = DecoderLayer(model.config)
    load_pytorch(with_a_dot, state, prefix="transformer.decoder.layers.1.")
    assert same(snapshot(layer), snapshot(with_a_dot))


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


# --- PyTorch's classes, looked for in minigrad.nn -----------------------------------------------------------


@pytest.mark.parametrize("name", IN_TRANSFORMER)
def test_the_error_for_a_class_of_pytorch_names_ours(name):
    with pytest.raises(AttributeError, match=re.escape(IN_TRANSFORMER[name])):
        getattr(nn, name)
    ours = pkgutil.resolve_name(IN_TRANSFORMER[name])
    assert ours is Transformer or ours is MultiHeadAttention or ours in CHILDREN


def test_other_names_are_as_unknown_as_ever():
    with pytest.raises(AttributeError, match="'Nothing'"):
        nn.Nothing  # noqa: B018
    with pytest.raises(AttributeError, match=r"minigrad\.concatenate"):
        nn.cat  # noqa: B018
