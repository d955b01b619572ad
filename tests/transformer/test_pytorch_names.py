"""Names of PyTorch's weights, there and back; the tables of docs/pytorch_weights.md."""

import pkgutil
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from minigrad import nn
from minigrad.checkpoint import load_tensors
from minigrad.compat.names import IN_TRANSFORMER

from tests.transformer.pytorch_models import make, same, snapshot
from transformer import MultiHeadAttention, Transformer, TransformerConfig
from transformer.interop import BARE, ModelNames, load_pytorch, pytorch_names, save_pytorch, to_pytorch
from transformer.interop.names import CHILDREN
from transformer.model import DecoderLayer, EncoderLayer

PAGE = Path(__file__).parents[2] / "docs" / "pytorch_weights.md"


# --- The tables of the page ---------------------------------------------------------------------------------


def tables(heading):
    """The tables under a heading, each as {their name: our names}, without what follows a comma in words."""
    section = re.split(r"^##+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith(heading)]
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        cells = [line.strip("|").split("|") for line in table.splitlines()[2:]]
        rows = [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in cells]
        found.append({left[0]: tuple(right) for left, right in rows})
    return found


def parts(pairs):
    """{their part: our part}, both with an asterisk for what is below, from the pairs of a module."""
    found = {}
    for theirs, ours in pairs:
        their_part, our_part = theirs.partition(".")[0], ours[0].rpartition(".")[0]
        for inner in (".query", ".output"):
            our_part = our_part.removesuffix(inner)
        found[f"{their_part}.*"] = (f"{our_part}.*",)
    return found


def test_the_tables_of_attention():
    packed, apart = tables("nn.MultiheadAttention is")
    assert dict(pytorch_names(MultiHeadAttention(4, 2))) == packed
    assert dict(pytorch_names(MultiHeadAttention(4, 2, kdim=3, vdim=5))) == apart


@pytest.mark.parametrize(("heading", "kind"), [("nn.TransformerEncoderLayer is", EncoderLayer),
                                               ("nn.TransformerDecoderLayer is", DecoderLayer)])
def test_the_tables_of_the_layers(heading, kind):
    (table,) = tables(heading)
    assert parts(pytorch_names(kind(make().config))) == table


def test_the_table_of_the_stacks():
    (table,) = tables("nn.Transformer is")
    found = {pair.theirs: pair.ours[0] for pair in pytorch_names(make(), names=BARE)}
    for theirs, (ours,) in table.items():
        their_part, our_part = (name.replace("N", "0").removesuffix("*") for name in (theirs, ours))
        assert any(name.startswith(their_part) and found[name].startswith(our_part) for name in found)
    known = tuple(re.sub(r"\.N\.\*|\*", "", theirs) for theirs in table)
    assert [name for name in found if not name.startswith(known)] == []


def test_the_table_of_a_whole_model():
    (table,) = tables("A model around")
    found = {theirs: ours[0] for theirs, ours in pytorch_names(make()) if not theirs.startswith("transformer.")}
    assert found == {theirs: ours[0] for theirs, ours in table.items() if theirs != "transformer.*"}
    defaults = {getattr(ModelNames(), field.name) for field in fields(ModelNames)}
    assert defaults == {name.partition(".")[0] for name in table}


def test_the_options_the_page_names_are_those_of_the_configuration():
    text = PAGE.read_text(encoding="utf-8").partition("## What a state_dict")[2].partition("\n\n`nn.Multihead")[0]
    right = [line.split("|")[2] for line in text.splitlines() if line.startswith("|")][2:]
    named = {name.partition("=")[0] for cell in right for name in re.findall(r"`([^`]+)`", cell) if name[0] != '"'}
    assert len(named) >= 10
    assert named <= {field.name for field in fields(TransformerConfig)}


# --- There and back -----------------------------------------------------------------------------------------

OPTIONS = [{}, {"bias": False, "norm_bias": False}, {"final_norm": False}, {"tie_output": True, "output_bias": False},
           {"tie_output": True, "output_bias": False, "share_embeddings": True}, {"share_embeddings": True},
           {"positions": "sinusoidal"}, {"num_encoder_layers": 0}, {"output_bias": False}]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_whole_model_comes_back_bit_for_bit(options, tmp_path, device):
    model, other = make(**options).to(device), make(**options).to(device)
    assert not same(snapshot(model), snapshot(other))
    save_pytorch(tmp_path / "model.safetensors", model, prefix="module")
    load_pytorch(other, tmp_path / "model.safetensors", prefix="module")
    assert same(snapshot(model), snapshot(other))
    _, metadata = load_tensors(tmp_path / "model.safetensors")
    assert metadata == {"format": "pt"}


def test_every_parameter_has_a_name_and_none_has_two():
    for options in OPTIONS:
        model = make(**options)
        ours = [name for pair in pytorch_names(model) for name in pair.ours]
        assert set(ours) == {name for name, _ in model.named_parameters()}
        assert len(ours) - len(set(ours)) == (("tie_output" in options) + ("share_embeddings" in options))
        theirs = [pair.theirs for pair in pytorch_names(model)]
        assert len(theirs) == len(set(theirs))


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
    assert not same(snapshot(layer), snapshot(model.decoder.layers[0]))


def test_a_stack_leaves_its_embedding_alone():
    model, other = make(), make()
    before = snapshot(other)
    load_pytorch(other.encoder, to_pytorch(model.encoder))
    after, given = snapshot(other), snapshot(model)
    for name, array in after.items():
        loaded = name.startswith(("encoder.layers.", "encoder.norm."))
        assert np.array_equal(array, (given if loaded else before)[name]), name


def test_a_bare_transformer_leaves_embeddings_and_projection_alone():
    model, other = make(), make()
    before = snapshot(other)
    load_pytorch(other, to_pytorch(model, names=BARE), names=BARE)
    after, given = snapshot(other), snapshot(model)
    for name, array in after.items():
        loaded = ".layers." in name or ".norm." in name
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
    message = f"minigrad.nn has no '{name}'; here it is {IN_TRANSFORMER[name]}, and transformer.interop loads"
    with pytest.raises(AttributeError, match=re.escape(message)):
        getattr(nn, name)
    ours = pkgutil.resolve_name(IN_TRANSFORMER[name])
    assert ours is Transformer or ours is MultiHeadAttention or ours in CHILDREN


def test_other_names_are_as_unknown_as_ever():
    with pytest.raises(AttributeError, match=r"module 'minigrad\.nn' has no attribute 'Nothing'"):
        nn.Nothing  # noqa: B018
    with pytest.raises(AttributeError, match=r"minigrad\.nn has no 'cat'; here it is minigrad\.concatenate"):
        nn.cat  # noqa: B018
