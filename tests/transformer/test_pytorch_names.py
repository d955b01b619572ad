"""States with PyTorch's names, or names of their own, into modules and back; what does not fit changes nothing."""

import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad.checkpoint import CheckpointError, load_tensors
from minigrad.device import to_numpy

from tests.transformer.tiny import tiny_config
from transformer import Encoder, MultiHeadAttention, Transformer
from transformer.interop import load_pytorch, pytorch_names, save_pytorch, to_pytorch
from transformer.model import DecoderLayer, EncoderLayer

SIZES = {"d_model": 4, "num_heads": 2, "d_ff": 3}


class Tree(nn.Module):
    """A module of a user: parameters, buffers and children by name."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)


def whole(**changes):
    return Transformer(tiny_config(**SIZES, **changes))


def block():
    return Tree(table=nn.Embedding(7, 4), layers=nn.ModuleList([EncoderLayer(**SIZES) for _ in range(2)]),
                norm=nn.LayerNorm(4))


def fill(module, seed=0):
    """Other values in every parameter and buffer; returns the module."""
    draw = np.random.default_rng(seed)
    for tensor in module.state_dict().values():
        tensor.copy_(draw.normal(size=tensor.shape).astype(tensor.dtype))
    return module


def arrays(state):
    """A module's, or those of a state: copies."""
    state = state.state_dict() if isinstance(state, nn.Module) else state
    return {name: np.array(to_numpy(tensor.data)) for name, tensor in state.items()}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


# --- There and back -----------------------------------------------------------------------------------------


def adapted():
    """A layer with a part in another's place, and one of a class of its own with a further part."""
    class Adapted(EncoderLayer):
        def __init__(self):
            super().__init__(**SIZES)
            self.adapter = nn.Linear(4, 2)

    layer = EncoderLayer(**SIZES)
    layer.feed_forward = Tree(gate=nn.Linear(4, 4))
    layer.self_attention.query = Tree(inner=nn.Linear(4, 4), low=nn.Parameter(np.zeros((4, 1))))
    return Tree(swapped=layer, further=Adapted())


def tied():
    table = nn.Embedding(7, 4)
    return Tree(table=table, head=Tree(weight=table.weight), again=table)


MODULES = {  # and some of PyTorch's names
    "a buffer": (lambda: Tree(count=Tensor(np.int64(3)), embedding=nn.Sequential(MultiHeadAttention(4, 2))),
                 {"count", "embedding.0.in_proj_weight", "embedding.0.in_proj_bias", "embedding.0.out_proj.weight"}),
    "other widths": (lambda: MultiHeadAttention(4, 2, kdim=3), {"q_proj_weight", "k_proj_weight", "in_proj_bias"}),
    "tied": (tied, {"table.weight", "head.weight", "again.weight"}),
    "parts of one's own": (adapted, {"swapped.feed_forward.gate.weight", "swapped.self_attn.query.low",
                                     "swapped.self_attn.key.weight", "further.adapter.weight",
                                     "further.self_attn.in_proj_weight"}),
    "no cross-attention": (lambda: DecoderLayer(**SIZES, cross_attention=False), {"norm2.weight"}),
    "a stack below": (lambda: Tree(encoder=Encoder(whole().config, nn.Embedding(7, 4))),
                      {"encoder.embedding.table.weight"}),
    "whole": (lambda: whole(positions="learned"), {"decoder.embedding.positions.weight", "decoder.layers.0.norm3.bias",
                                                   "decoder.layers.0.multihead_attn.in_proj_weight"}),
    "one vocabulary": (lambda: whole(tie_output=True, share_embeddings=True, norm="post"),
                       {"decoder.embedding.table.weight"}),
}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_comes_back_bit_for_bit(name, tmp_path, device):
    make, expected = MODULES[name]
    module, other = fill(make(), 1).to(device), fill(make(), 2).to(device)
    names = pytorch_names(module)
    assert expected <= names.keys()
    assert {ours for held in names.values() for ours in held} == module.state_dict().keys()  # none is left out
    save_pytorch(tmp_path / "file", module, prefix="a.b")
    assert load_pytorch(other, tmp_path / "file", prefix="a.b") == ([], [])
    assert same(arrays(module), arrays(other))
    assert load_tensors(tmp_path / "file")[1] == {"format": "pt"}


def test_gradients_of_frozen_parts_are_zeros_and_all_are_copies(device):
    module = fill(MultiHeadAttention(4, 2)).to(device, np.float64)
    module.output.bias.requires_grad = module.key.bias.requires_grad = False
    assert to_pytorch(module, gradients=True) == {}
    x = Tensor(np.random.default_rng(0).normal(size=(2, 3, 4)), device=device)
    (module(x, x, x) ** 2).sum().backward()
    gradients, before = to_pytorch(module, gradients=True), (arrays(module), module.query.weight.grad.numpy().copy())
    assert gradients.keys() == {"in_proj_weight", "in_proj_bias", "out_proj.weight"}
    assert (gradients["in_proj_bias"].numpy()[4:8] == 0).all()
    for tensor in [*gradients.values(), *to_pytorch(module).values()]:
        tensor.copy_(np.zeros(tensor.shape))
    assert same(arrays(module), before[0])
    assert np.array_equal(module.query.weight.grad.numpy(), before[1])


# --- Other names --------------------------------------------------------------------------------------------


def test_a_function_leads_from_their_names_to_those_here():
    module, other = fill(block(), 1), fill(block(), 2)
    attention = module.layers[0].self_attention
    ours = {f"layers.0.self_attention.{name}": value for name, value in attention.state_dict().items()}
    state = ours | {name: value for name, value in to_pytorch(module).items() if "layers.0.self_" not in name}
    state = {name.replace("layers.", "h."): value for name, value in state.items()}  # the names here serve, too
    state["h.0.mask"] = np.ones(1)
    names = {"again": "norm.bias", "h.0.mask": None}

    def rename(name):
        return names.get(name, name.replace("h.", "layers."))

    assert load_pytorch(other, {**state, "again": state["norm.bias"]}, rename=rename) == ([], [])
    assert same(arrays(module), arrays(other))
    with pytest.raises(ValueError, match=r"again differs from another tensor that is norm\.bias"):
        load_pytorch(other, {**state, "again": state["norm.weight"]}, rename=rename)


# --- What does not fit --------------------------------------------------------------------------------------


def test_every_problem_is_listed_and_nothing_is_changed():
    module, other = fill(block(), 1), fill(block(), 2)
    state, before = arrays(to_pytorch(module)), arrays(other)
    wrong = state | {"more": np.ones(1), "norm.weight": np.ones(5, np.float32), "table.weight": np.zeros((7, 4))}
    del wrong["norm.bias"]
    for given, strict, problems in (
            (wrong, True, ["missing: norm.bias", "unexpected: more", "norm.weight: shape (5,) given, (4,) needed",
                           "table.weight: dtype float64 given, float32 needed"]),
            (wrong, False, ["norm.weight: shape"]),
            (state | {"layers.1.self_attn.in_proj_weight": np.zeros((4, 12), np.float32)}, True,
             ["in_proj_weight: shape (4, 12) given, (12, 4) needed"]),
            (state | {"layers.0.self_attention.query.weight": before["norm.bias"]}, True,
             ["query.weight is a part of a tensor that is given, too"])):
        with pytest.raises(ValueError, match="nothing was changed") as error:
            load_pytorch(other, given, strict=strict)
        assert [problem for problem in problems if problem not in str(error.value)] == []
    assert same(arrays(other), before)


def test_names_that_are_not_shared_are_returned():
    module, other = fill(block(), 1), fill(block(), 2)
    state, before, given = arrays(to_pytorch(module)), arrays(other), arrays(module)
    del state["norm.bias"], state["layers.1.self_attn.in_proj_weight"]
    keys = load_pytorch(other, {**state, "more": np.ones(1)}, strict=False)
    kept = {"norm.bias"} | {f"layers.1.self_attention.{part}.weight" for part in ("query", "key", "value")}
    assert (set(keys.missing_keys), keys.unexpected_keys) == (kept, ["more"])
    assert same(arrays(other), {name: (before if name in kept else given)[name] for name in before})


def test_tied_values():
    """A state has one of the names, or all of them with the same values."""
    module, state = tied(), {"table.weight": np.full((7, 4), 2, np.float32)}
    for name in ("table.weight", "again.weight"):
        load_pytorch(module, {name: state["table.weight"] + len(name)})
        assert module.head.weight.numpy()[0, 0] == 2 + len(name)
    with pytest.raises(ValueError, match=r"head\.weight: differs from table\.weight"):
        load_pytorch(module, {**state, "head.weight": state["table.weight"] + 1})
    with pytest.raises(ValueError, match=r"missing: table\.weight, head\.weight, again\.weight"):
        load_pytorch(module, {})


@pytest.mark.parametrize(("given", "own", "fits"), [
    ("float16", "float32", True), ("float32", "float64", True), ("float64", "float32", False),
    ("float32", "float16", False), ("int8", "float32", False)])
def test_values_of_lower_precision_are_widened(given, own, fits, device):
    module = nn.Linear(3, 2).to(device, own)
    state = {"weight": np.array([[1, 0, 1], [0, 1, 1]]), "bias": np.array([1, 0])}
    state = {name: Tensor(array.astype(given), device=device) for name, array in state.items()}
    if fits:
        load_pytorch(module, state)
        assert same(arrays(module), arrays(state))
        assert module.weight.dtype == own
    else:
        with pytest.raises(ValueError, match=f"weight: dtype {given} given, {own} needed"):
            load_pytorch(module, state)


def test_a_tensor_of_pytorch_in_bfloat16_or_on_a_gpu():
    """It has ``__array__``, which does not work before it is detached, on the host and in a dtype of NumPy."""
    class Theirs:
        def __init__(self, array, dtype="torch.bfloat16", ready=0):
            self.array, self.dtype, self.ready = array, dtype, ready

        def detach(self):
            return Theirs(self.array, self.dtype, 1)

        def cpu(self):
            return Theirs(self.array, self.dtype, self.ready and 2)

        def float(self):
            return Theirs(self.array, "torch.float32", self.ready)

        def __array__(self, *args, **kwargs):
            assert (self.ready, self.dtype) == (2, "torch.float32")
            return self.array

    module = nn.Linear(2, 1)
    load_pytorch(module, {"weight": Theirs(np.float32([[1, 2]])), "bias": Theirs(np.float32([3]), "torch.float32")})
    assert module.weight.numpy().tolist() == [[1, 2]]


def test_arguments_of_other_types(tmp_path):
    module = MultiHeadAttention(4, 2)
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04" + bytes(60))
    for call, error, message in (
            (lambda: to_pytorch({}), TypeError, "module of minigrad, got a dict"),
            (lambda: load_pytorch(module, {"in_proj_bias": [0.0] * 12}), TypeError, r"in_proj_bias .* list"),
            (lambda: load_pytorch("weights.safetensors", module), TypeError, "str|MultiHeadAttention"),
            (lambda: load_pytorch(module, module), TypeError, "got a MultiHeadAttention"),
            (lambda: load_pytorch(module, tmp_path / "model.pt"), CheckpointError,
             r"model\.pt: not a readable safetensors file.*torch\.load")):
        with pytest.raises(error, match=message):
            call()
