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
    """A module of a user, with parts by name."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


def whole(**changes):
    return Transformer(tiny_config(**SIZES, **changes))


def block():
    return Tree(table=nn.Embedding(7, 4), layers=nn.ModuleList([EncoderLayer(**SIZES) for _ in range(2)]),
                norm=nn.LayerNorm(4))


def filled(module, seed):
    """The module with other values in every parameter and buffer."""
    draw = np.random.default_rng(seed)
    for tensor in module.state_dict().values():
        tensor.copy_(draw.normal(size=tensor.shape).astype(tensor.dtype))
    return module


def held(module):
    """The values of its state, to compare with ``==``."""
    return {name: to_numpy(tensor.data).tolist() for name, tensor in module.state_dict().items()}


# --- There and back -----------------------------------------------------------------------------------------


def counted():
    module = Tree(embedding=nn.Sequential(MultiHeadAttention(4, 2)))
    module.register_buffer("count", Tensor(np.int64(3)))
    return module


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


MODULES = {  # by some of PyTorch's names
    "count embedding.0.in_proj_weight embedding.0.in_proj_bias embedding.0.out_proj.weight": counted,
    "q_proj_weight k_proj_weight in_proj_bias": lambda: MultiHeadAttention(4, 2, kdim=3),
    "table.weight head.weight again.weight": tied,
    "swapped.feed_forward.gate.weight swapped.self_attn.query.low swapped.self_attn.key.weight "
    "further.adapter.weight further.self_attn.in_proj_weight": adapted,
    "norm2.weight": lambda: DecoderLayer(**SIZES, cross_attention=False),
    "encoder.embedding.table.weight": lambda: Tree(encoder=Encoder(whole().config, nn.Embedding(7, 4))),
    "decoder.embedding.positions.weight decoder.layers.0.norm3.bias decoder.layers.0.multihead_attn.in_proj_weight":
        lambda: whole(positions="learned"),
    "decoder.embedding.table.weight": lambda: whole(tie_output=True, share_embeddings=True, norm="post"),
}


@pytest.mark.parametrize(("expected", "make"), MODULES.items())
def test_every_module_comes_back_bit_for_bit(make, expected, tmp_path, device):
    module, other = (filled(make(), seed).to(device) for seed in (1, 2))
    names = pytorch_names(module)
    assert {*expected.split()} <= names.keys()
    assert {ours for packed in names.values() for ours in packed} == module.state_dict().keys()  # none is left out
    save_pytorch(tmp_path / "file", module, prefix="a.b")
    assert load_pytorch(other, tmp_path / "file", prefix="a.b") == ([], [])
    assert held(module) == held(other)
    assert load_tensors(tmp_path / "file")[1] == {"format": "pt"}


def test_gradients_of_frozen_parts_are_zeros_and_all_are_copies(device):
    module = filled(MultiHeadAttention(4, 2), 0).to(device)
    module.output.bias.requires_grad = module.key.bias.requires_grad = False
    x = Tensor(np.ones((2, 3, 4), np.float32), device=device)
    module(x, x, x).sum().backward()
    gradients, before = to_pytorch(module, gradients=True), held(module)
    assert gradients.keys() == {"in_proj_weight", "in_proj_bias", "out_proj.weight"}
    assert (gradients["in_proj_bias"].numpy()[4:8] == 0).all()
    for tensor in [*gradients.values(), *to_pytorch(module).values()]:
        tensor.copy_(np.zeros(tensor.shape))
    assert held(module) == before
    assert module.value.weight.grad.numpy().all()


def test_a_function_leads_from_their_names_to_those_here():
    module, other = filled(block(), 1), filled(block(), 2)
    state = {name.replace("layers.", "h."): value for name, value in to_pytorch(module).items()}
    state["h.0.mask"] = np.ones(1)
    names = {"again": "norm.bias", "h.0.mask": None}

    def rename(name):
        return names.get(name, name.replace("h.", "layers."))

    assert load_pytorch(other, {**state, "again": state["norm.bias"]}, rename=rename) == ([], [])
    assert held(module) == held(other)
    with pytest.raises(ValueError, match=r"again differs from another tensor that is norm\.bias"):
        load_pytorch(other, {**state, "again": state["norm.weight"]}, rename=rename)


# --- What does not fit --------------------------------------------------------------------------------------

IN_PROJ = "layers.1.self_attn.in_proj_weight"


@pytest.mark.parametrize(("make", "changes", "problems"), [
    (block, {"norm.bias": None, IN_PROJ: None, "more": np.ones(1)},
     ("missing: layers.1.self_attention.query.weight, layers.1.self_attention.key.weight, "
      "layers.1.self_attention.value.weight, norm.bias; unexpected: more")),
    (block, {"norm.weight": np.ones(5, np.float32), "table.weight": np.zeros((7, 4))},
     "norm.weight: shape (5,) given, (4,) needed; table.weight: dtype float64 given, float32 needed"),
    (block, {IN_PROJ: np.zeros((4, 12), np.float32)}, "in_proj_weight: shape (4, 12) given, (12, 4) needed"),
    (block, {"layers.0.self_attention.query.weight": np.ones((4, 4), np.float32)},
     "differs from another tensor that is layers.0.self_attention.query.weight, too"),
    (tied, {"head.weight": np.ones((7, 4), np.float32)}, "head.weight: differs from table.weight"),
    (tied, dict.fromkeys(["table.weight", "head.weight", "again.weight"]),
     "missing: table.weight, head.weight, again.weight"),
])
def test_every_problem_is_listed_and_nothing_is_changed(make, changes, problems):
    """If not `strict`, problems of names alone are none."""
    module, other = filled(make(), 1), filled(make(), 2)
    state = {name: value for name, value in (to_pytorch(module) | changes).items() if value is not None}
    before = held(other)
    with pytest.raises(ValueError, match="nothing was changed") as error:
        load_pytorch(other, state, strict=problems.startswith("missing"))
    assert [problem for problem in problems.split("; ") if problem not in str(error.value)] == []
    assert held(other) == before


def test_names_alone_are_returned_if_it_is_not_strict():
    module, other = filled(block(), 1), filled(block(), 2)
    state, before = to_pytorch(module) | {"more": np.ones(1)}, held(other)
    del state["norm.bias"]
    assert load_pytorch(other, state, strict=False) == (["norm.bias"], ["more"])
    assert held(other) == held(module) | {"norm.bias": before["norm.bias"]}


def test_one_name_of_tied_values_is_enough():
    module = tied()
    load_pytorch(module, {"again.weight": np.full((7, 4), 2, np.float32)})
    assert (module.head.weight.numpy() == 2).all()


@pytest.mark.parametrize(("given", "own", "fits"), [
    ("float16", "float32", True), ("float32", "float16", False), ("int8", "float32", False)])
def test_values_of_lower_precision_are_widened(given, own, fits, device):
    module = nn.Linear(3, 1, bias=False).to(device, own)
    state = {"weight": Tensor(np.array([[1, 0, 1]], given), device=device)}
    if fits:
        load_pytorch(module, state)
        assert (held(module), module.weight.dtype) == ({"weight": [[1, 0, 1]]}, own)
    else:
        with pytest.raises(ValueError, match=f"weight: dtype {given} given, {own} needed"):
            load_pytorch(module, state)


def test_a_tensor_of_pytorch_in_bfloat16_or_on_a_gpu():
    """It has ``__array__``, which does not work before it is detached, on the host and in a dtype of NumPy."""
    class Theirs:
        dtype, told = "torch.bfloat16", ""

        def detach(self):
            self.told += "detach "
            return self

        def cpu(self):
            self.told += "cpu"
            return self

        def float(self):
            self.dtype = "torch.float32"
            return self

        def __array__(self, *args, **kwargs):
            assert (self.told, self.dtype) == ("detach cpu", "torch.float32")
            return np.float32([[1, 2]])

    module = nn.Linear(2, 1, bias=False)
    load_pytorch(module, {"weight": Theirs()})
    assert held(module) == {"weight": [[1, 2]]}


def test_sources_of_other_kinds(tmp_path):
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04" + bytes(60))
    for source, error, message in (({"in_proj_bias": [0.0] * 12}, TypeError, "in_proj_bias .* list"),
                                   (3, TypeError, "int"), (tmp_path / "model.pt", CheckpointError, "torch.load")):
        with pytest.raises(error, match=message):
            load_pytorch(MultiHeadAttention(4, 2), source)
