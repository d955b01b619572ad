"""Names and errors of loading and saving PyTorch's weights, and the tables of docs/pytorch_weights.md."""

import pkgutil
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad.checkpoint import CheckpointError, load_tensors
from minigrad.names import IN_TRANSFORMER

from transformer import MultiHeadAttention, Transformer, TransformerConfig
from transformer.layers import DecoderLayer, EncoderLayer
from transformer.pytorch import BARE, ModelNames, load_pytorch, pytorch_names, save_pytorch, to_pytorch
from transformer.pytorch.names import CHILDREN

PAGE = Path(__file__).parents[2] / "docs" / "pytorch_weights.md"


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
    to = ".to(dtype=...)"
    with pytest.raises(ValueError, match="nothing was changed") as error:
        load_pytorch(model, state)
    assert str(error.value).splitlines() == [
        "load_pytorch: nothing was changed, because the state does not fit the Transformer:",
        "  missing: transformer.encoder.norm.weight, generator.bias",
        "  unexpected: generator.extra, transformer.pe",
        f"  {attention}.in_proj_weight: shape (4, 12) given, (12, 4) needed",
        f"  {attention}.in_proj_bias: dtype float64 given, float32 needed; cast the values, or the module with {to}",
        "  target_embedding.weight: shape (9, 4) given, (7, 4) needed",
    ]
    assert same(snapshot(model), before)


def test_what_has_no_counterpart_can_be_ignored():
    model, other = make(positions="sinusoidal"), make(positions="sinusoidal")
    state = {**to_pytorch(model), "positional_encoding.pe": np.zeros((5, 1, 4), np.float32)}
    with pytest.raises(ValueError, match=r"unexpected: positional_encoding\.pe"):
        load_pytorch(other, state)
    load_pytorch(other, state, ignore=["positional_encoding.pe"])
    assert same(snapshot(model), snapshot(other))


def test_a_name_that_was_forgotten_is_missed():
    """A model with embeddings is not taken for a bare one: its embeddings would stay as they were drawn."""
    state = to_pytorch(make(), names=ModelNames(source_embedding="src_emb"))
    with pytest.raises(ValueError, match=r"missing: source_embedding\.weight\n  unexpected: src_emb\.weight"):
        load_pytorch(make(), state)
    with pytest.raises(ValueError, match=r"missing: encoder\.layers\.0.*\n  unexpected: transformer\."):
        load_pytorch(make(), state, names=BARE)


def test_attention_of_another_form():
    with pytest.raises(ValueError, match=r"missing: q_proj_weight.*\n  unexpected: in_proj_weight"):
        load_pytorch(MultiHeadAttention(4, 2, kdim=3), to_pytorch(MultiHeadAttention(4, 2)))
    with pytest.raises(ValueError, match=r"unexpected: in_proj_bias, out_proj\.bias"):
        load_pytorch(MultiHeadAttention(4, 2, bias=False), to_pytorch(MultiHeadAttention(4, 2)))


def test_attention_with_learnt_extra_keys():
    extra = {name: np.zeros((1, 1, 4), np.float32) for name in ("bias_k", "bias_v")}
    with pytest.raises(ValueError, match=r"unexpected: bias_k, bias_v\n.*add_bias_kv=True has no counterpart here"):
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


@pytest.mark.parametrize("module", [nn.Sequential(nn.Linear(2, 2)), nn.Dropout(0.5)], ids=["Sequential", "Dropout"])
def test_modules_of_other_classes(module):
    with pytest.raises(TypeError, match=f"not for {type(module).__name__}"):
        load_pytorch(module, {})


def test_names_for_a_part():
    with pytest.raises(TypeError, match=r"names are those of the parts of a Transformer, .* is a MultiHeadAttention"):
        to_pytorch(MultiHeadAttention(4, 2), names=BARE)


def test_a_value_that_is_no_array():
    state = {**to_pytorch(MultiHeadAttention(4, 2)), "in_proj_bias": [0.0] * 12}
    with pytest.raises(TypeError, match="load_pytorch: in_proj_bias must be an array or a tensor, got list"):
        load_pytorch(MultiHeadAttention(4, 2), state)


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


@pytest.mark.parametrize("arguments", [
    ("weights.safetensors", MultiHeadAttention(4, 2)),
    ({}, MultiHeadAttention(4, 2)),
    (object(), "weights.safetensors"),
])
def test_exchanged_arguments(arguments):
    kind = type(arguments[0]).__name__
    with pytest.raises(TypeError, match=rf"load_pytorch\(module, source\); the first is .* it is a {kind}$"):
        load_pytorch(*arguments)


def test_a_module_is_no_source():
    with pytest.raises(TypeError, match=r"the source must be .* a state_dict, got a MultiHeadAttention"):
        load_pytorch(MultiHeadAttention(4, 2), MultiHeadAttention(4, 2))


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_pytorch(MultiHeadAttention(4, 2), tmp_path / "nothing.safetensors")
    (tmp_path / "model.pt").write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(CheckpointError, match=r"model\.pt: not a readable safetensors file"):
        load_pytorch(MultiHeadAttention(4, 2), tmp_path / "model.pt")


def test_loading_counts_as_a_change():
    """A graph that has saved the old weights says so, as after load_state_dict."""
    module = MultiHeadAttention(4, 2)
    state = to_pytorch(MultiHeadAttention(4, 2))
    x = Tensor(np.ones((1, 2, 4), np.float32), requires_grad=True)
    loss = module(x, x, x).sum()
    load_pytorch(module, state)
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


# --- PyTorch's classes, looked for in minigrad.nn -----------------------------------------------------------


@pytest.mark.parametrize("name", IN_TRANSFORMER)
def test_the_error_for_a_class_of_pytorch_names_ours(name):
    message = f"minigrad.nn has no '{name}'; here it is {IN_TRANSFORMER[name]}, and transformer.pytorch loads"
    with pytest.raises(AttributeError, match=re.escape(message)):
        getattr(nn, name)
    ours = pkgutil.resolve_name(IN_TRANSFORMER[name])
    assert ours is Transformer or ours is MultiHeadAttention or ours in CHILDREN


def test_other_names_are_as_unknown_as_ever():
    with pytest.raises(AttributeError, match=r"module 'minigrad\.nn' has no attribute 'Nothing'"):
        nn.Nothing  # noqa: B018
    with pytest.raises(AttributeError, match=r"minigrad\.nn has no 'cat'; here it is minigrad\.concatenate"):
        nn.cat  # noqa: B018
