"""States with names of their own into any module and back: trees of modules, maps of names, fused tensors, dtypes."""

import re

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad.device import to_numpy

from transformer import Encoder, MultiHeadAttention, Transformer, TransformerConfig
from transformer.interop import (
    Fused,
    ModelNames,
    load_pytorch,
    pytorch_names,
    save_pytorch,
    to_pytorch,
    transposed,
)
from transformer.model import DecoderLayer, EncoderLayer, LearnedPositions

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


def parameter(*shape):
    return nn.Parameter(np.zeros(shape, np.float32))


def config():
    return TransformerConfig(7, 7, **SIZES, num_encoder_layers=1, num_decoder_layers=1, positions="learned",
                             max_length=5)


def fill(module, seed=0):
    """Other values in every parameter and buffer; returns the module."""
    draw = np.random.default_rng(seed)
    for tensor in module.state_dict().values():
        tensor.copy_(draw.normal(size=tensor.shape).astype(tensor.dtype))
    return module


def snapshot(module):
    return {name: np.array(to_numpy(tensor.data)) for name, tensor in module.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def arrays(state):
    return {name: np.array(to_numpy(tensor.data)) for name, tensor in state.items()}


# --- Any module ---------------------------------------------------------------------------------------------


def adapted():
    """A layer with a part in another's place, and one of a class of its own with a further part."""
    class Adapted(EncoderLayer):
        def __init__(self):
            super().__init__(**SIZES)
            self.adapter = nn.Linear(4, 2)

    layer = EncoderLayer(**SIZES)
    layer.feed_forward = Tree(gate=nn.Linear(4, 4))
    layer.self_attention.query = Tree(inner=nn.Linear(4, 4), low=parameter(4, 1))
    return Tree(swapped=layer, further=Adapted())


def tied():
    table = nn.Embedding(7, 4)
    return Tree(table=table, head=Tree(weight=table.weight), again=table)


LEAVES = {
    "a buffer": (lambda: Tree(table=parameter(2, 3), count=Tensor(np.int64(3)), scale=parameter()),
                 ["table", "scale", "count"]),
    "sequential": (lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.LayerNorm(3)),
                   ["0.weight", "0.bias", "2.weight", "2.bias"]),
    "a list": (lambda: Tree(a=nn.ModuleList([nn.Linear(2, 1, bias=False)])), ["a.0.weight"]),
    "attention below": (lambda: Tree(block=nn.ModuleList([MultiHeadAttention(4, 2)])),
                        ["block.0.in_proj_weight", "block.0.in_proj_bias", "block.0.out_proj.weight",
                         "block.0.out_proj.bias"]),
    "positions": (lambda: Tree(places=LearnedPositions(3, 4)), ["places.weight"]),
    "tied": (tied, ["table.weight", "head.weight", "again.weight"]),
    "parts of one's own": (adapted, None),
    "a layer": (lambda: Tree(x=DecoderLayer(**SIZES, bias=False, norm_bias=False)), None),
    "a stack": (lambda: Tree(encoder=Encoder(config(), nn.Embedding(7, 4))), None),
    "a whole model": (lambda: Tree(core=Transformer(config()), head=nn.Linear(4, 2)), None),
}


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_module_comes_back_bit_for_bit(leaf, tmp_path, device):
    make, expected = LEAVES[leaf]
    module, other = fill(make(), 1).to(device), fill(make(), 2).to(device)
    names = [pair.theirs for pair in pytorch_names(module)]
    assert expected is None or names == expected
    held = {name for pair in pytorch_names(module) for name in pair.ours}
    tensors = [*module.named_parameters(), *module.named_buffers()]
    assert held == {name for name, _ in tensors}  # none is left out
    save_pytorch(tmp_path / "file", module)
    assert load_pytorch(other, tmp_path / "file") == ([], [])
    assert same(snapshot(module), snapshot(other))


@pytest.mark.parametrize("seed", range(12))
def test_a_random_tree_of_modules_comes_back(seed, tmp_path):
    draw = np.random.default_rng(seed)

    def grow(depth, draw):
        if depth == 0 or draw.random() < 0.2:
            return list(LEAVES.values())[draw.integers(len(LEAVES))][0]()
        children = [grow(depth - 1, draw) for _ in range(draw.integers(1, 4))]
        kind = draw.integers(3)
        if kind == 0:
            return nn.ModuleList(children)
        named = {f"part{i}": child for i, child in enumerate(children)}
        return Tree(**named) if kind == 1 else Tree(**named, own=parameter(2))

    state = draw.bit_generator.state
    module = fill(grow(3, draw), 1)
    draw.bit_generator.state = state
    other = fill(grow(3, draw), 2)
    names = {tuple(name.split(".")[:2]) for name in module.state_dict()}
    rename = {"all": "", **({"all.{}.x": "{}.part0"} if any(name[1:] == ("part0",) for name in names) else {}),
              **({"all.first": "part1"} if any(name[0] == "part1" for name in names) else {})} if seed % 2 else None
    save_pytorch(tmp_path / "file", module, prefix="model", rename=rename)
    load_pytorch(other, tmp_path / "file", prefix="model", rename=rename)
    assert same(snapshot(module), snapshot(other))


def test_what_replaces_a_part_and_what_a_class_adds_keep_their_names():
    names = {name for pair in pytorch_names(adapted()) for name in [pair.theirs]}
    assert {"swapped.feed_forward.gate.weight", "swapped.self_attn.query.low", "swapped.self_attn.query.inner.weight",
            "swapped.self_attn.key.weight", "swapped.self_attn.out_proj.weight", "swapped.norm1.weight",
            "further.adapter.weight", "further.linear1.weight", "further.self_attn.in_proj_weight"} <= names


def test_a_model_below_takes_names():
    module = Tree(core=Transformer(config()))
    names = ModelNames(transformer="t", source_embedding="src", generator=None)
    found = {pair.theirs for pair in pytorch_names(module, names=names)}
    assert {"core.t.encoder.layers.0.linear1.weight", "core.src.weight"} <= found
    assert not [name for name in found if "projection" in name or "generator" in name]


# --- Other names --------------------------------------------------------------------------------------------


class Block(nn.Module):
    """What the maps below are for."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 4)
        self.layers = nn.ModuleList([EncoderLayer(**SIZES) for _ in range(2)])
        self.norm = nn.LayerNorm(4)


LAYER, ATTENTION = "layers.{}", "layers.{}.self_attention"
QKV = (f"{ATTENTION}.query", f"{ATTENTION}.key", f"{ATTENTION}.value")
MAPS = {
    "prefixes": ({"wte": "table", "h": "layers"}, {"wte.weight", "h.0.self_attn.in_proj_weight", "norm.bias"}),
    "one name": ({"embedding": "table.weight"}, {"embedding", "layers.0.norm1.weight"}),
    "names of PyTorch": ({"a_{}.ln": "layers.{}.norm1", "a_{}.mha": "layers.{}.self_attn"},
                         {"a_1.ln.bias", "a_0.mha.in_proj_weight", "a_1.mha.out_proj.bias"}),
    "the most specific": ({"x": "layers", "first": "layers.0", "w{}": "layers.{}.linear1"},
                          {"x.1.norm1.weight", "first.norm1.weight", "w0.weight", "w1.bias"}),
    "a part of a packed tensor": ({"q.{}": f"{ATTENTION}.query"}, {"q.0.weight", "layers.0.self_attention.key.weight"}),
    "another root": ({"model": ""}, {"model.table.weight", "model.layers.0.self_attn.in_proj_bias"}),
    "two names for one": ({"wte": "table", "lm_head": "table"}, {"wte.weight", "lm_head.weight"}),
    "fused": ({"h.{}.qkv": Fused(QKV)}, {"h.0.qkv.weight", "h.1.qkv.bias", "layers.0.self_attn.out_proj.weight"}),
    "fused and transposed": ({"h.{}.c_attn": Fused(QKV, transpose=True), "h.{}": LAYER,
                              "h.{}.c_proj": transposed(f"{ATTENTION}.output")},
                             {"h.0.c_attn.weight", "h.0.c_proj.bias", "h.1.norm1.weight"}),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_map_leads_there_and_back(name, tmp_path, device):
    rename, expected = MAPS[name]
    module, other = fill(Block(), 1).to(device), fill(Block(), 2).to(device)
    found = {pair.theirs for pair in pytorch_names(module, rename=rename)}
    assert expected <= found
    save_pytorch(tmp_path / "file", module, prefix="a.b", rename=rename)
    load_pytorch(other, tmp_path / "file", prefix="a.b", rename=rename)
    assert same(snapshot(module), snapshot(other))


def test_how_a_fused_tensor_stands():
    """Against its definition: rows of query, key and value; the same transposed."""
    module = fill(MultiHeadAttention(4, 2))
    q, k, v = (getattr(module, name).weight.numpy() for name in ("query", "key", "value"))
    names = ("query", "key", "value")
    stacked = to_pytorch(module, rename={"qkv": Fused(names)})
    assert np.array_equal(stacked["qkv.weight"].numpy(), np.concatenate([q, k, v]))
    assert stacked["qkv.bias"].shape == (12,)
    turned = to_pytorch(module, rename={"qkv": Fused(names, transpose=True)})
    assert np.array_equal(turned["qkv.weight"].numpy(), np.concatenate([q, k, v]).T)
    assert np.array_equal(turned["qkv.bias"].numpy(), stacked["qkv.bias"].numpy())


def here(name):
    return name.replace("h.", "layers.").replace("ln", "norm")


def test_a_function_leads_from_their_names_to_those_here():
    module, other = fill(Block(), 1), fill(Block(), 2)
    state = {theirs.replace("layers.", "h.").replace("norm", "ln"): value
             for theirs, value in [*to_pytorch(module).items()] if "h.0.self_attn" not in theirs}
    for part in ("query", "key", "value"):  # the names here serve, too
        for kind in ("weight", "bias"):
            state[f"h.0.self_attention.{part}.{kind}"] = getattr(getattr(module.layers[0].self_attention, part), kind)
    del state["h.0.self_attn.in_proj_weight"], state["h.0.self_attn.in_proj_bias"]
    load_pytorch(other, state, rename=here)
    assert same(snapshot(module), snapshot(other))
    del state["h.0.self_attention.key.bias"]
    state["else"] = np.ones(1)
    with pytest.raises(ValueError, match=r"missing: layers\.0\.self_attention\.key\.bias\n  unexpected: else"):
        load_pytorch(other, state, rename=here)
    with pytest.raises(TypeError, match=r"rename: .* give a dictionary"):
        to_pytorch(module, rename=here)


def test_what_the_map_says_has_no_counterpart():
    module = nn.Linear(2, 3)
    state = {**to_pytorch(module, rename={"h.0.c": ""}), "h.0.bias": np.ones(1), "h.1.bias.x": np.ones(1)}
    assert load_pytorch(module, state, rename={"h.0.c": "", "h.{}.bias": None}) == ([], [])
    assert load_pytorch(module, state, rename=lambda n: n.removeprefix("h.0.c.") if ".c." in n else None) == ([], [])
    with pytest.raises(ValueError, match=r"unexpected: h\.1\.bias\.x"):
        load_pytorch(module, state, rename={"h.0.c": "", "h.{}.bias.y": None, "h.0.bias": None})


@pytest.mark.parametrize(("rename", "message"), [
    ({"h.{}": "norm"}, "'h.{}' and 'norm' must have equally many {}"),
    ({"qkv": Fused(("norm", "table"))}, "qkv.bias would hold table.bias, which a Block lacks"),
    ({"qkv.0.weight": Fused(("layers.0.self_attention.query.weight", "norm.weight"))},
     "Fused: layers.0.self_attention.query.weight, norm.weight cannot be stacked, with shapes (4, 4), (4,)"),
], ids=["{}", "absent", "widths"])
def test_a_map_that_cannot_be(rename, message):
    module = Block()
    for call in (lambda: to_pytorch(module, rename=rename), lambda: load_pytorch(module, to_pytorch(module) | {
            "qkv.0.weight": np.zeros((12, 4), np.float32)}, rename=rename)):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()


def test_what_is_neither_a_state_nor_a_file_of_one(tmp_path):
    module = Block()
    with pytest.raises(TypeError, match="a state_dict, got a Block"):
        load_pytorch(module, module)
    (tmp_path / "pickled.pt").write_bytes(b"PK\x03\x04" + bytes(60))
    with pytest.raises(ValueError, match=r"pickled\.pt: not a readable safetensors file.*torch\.load"):
        load_pytorch(module, tmp_path / "pickled.pt")


# --- Strictness, dtypes, gradients --------------------------------------------------------------------------


def test_names_that_are_not_shared_are_returned_and_values_that_do_not_fit_are_errors():
    module, other = fill(Block(), 1), fill(Block(), 2)
    state = arrays(to_pytorch(module))
    del state["norm.bias"], state["layers.1.self_attn.in_proj_weight"]
    state["more"] = np.ones(1)
    before = snapshot(other)
    with pytest.raises(ValueError, match=r"norm\.weight: shape \(5,\) given, \(4,\) needed") as caught:
        load_pytorch(other, state | {"norm.weight": np.ones(5, np.float32)}, strict=False)
    assert "missing" not in str(caught.value)
    assert same(snapshot(other), before)
    keys = load_pytorch(other, state, strict=False)
    assert keys.missing_keys == ["layers.1.self_attn.in_proj_weight", "norm.bias"]
    assert keys.unexpected_keys == ["more"]
    after, given = snapshot(other), snapshot(module)
    kept = {"norm.bias"} | {f"layers.1.self_attention.{part}.weight" for part in ("query", "key", "value")}
    assert all(np.array_equal(after[name], (before if name in kept else given)[name]) for name in after)


@pytest.mark.parametrize(("given", "own", "fits"), [
    ("float16", "float32", True), ("float16", "float64", True), ("float32", "float64", True),
    ("float64", "float32", False), ("float32", "float16", False), ("int8", "float32", False),
    ("bool", "float32", False),
])
def test_values_of_lower_precision_are_widened(given, own, fits, device):
    module = nn.Linear(3, 2).to(device, own)
    before, state = snapshot(module), {"weight": np.array([[1, 0, 1], [0, 1, 1]]), "bias": np.array([1, 0])}
    state = {name: Tensor(array.astype(given), device=device) for name, array in state.items()}
    if fits:
        load_pytorch(module, state)
        assert np.array_equal(to_numpy(module.weight.data), to_numpy(state["weight"].data))
        assert module.weight.dtype == own
    else:
        with pytest.raises(ValueError, match=f"weight: dtype {given} given, {own} needed; cast the values"):
            load_pytorch(module, state)
        assert same(snapshot(module), before)


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
            assert self.ready == 2
            assert self.dtype == "torch.float32"
            return self.array

    module = nn.Linear(2, 1)
    load_pytorch(module, {"weight": Theirs(np.float32([[1, 2]])), "bias": Theirs(np.float32([3]), "torch.float32")})
    assert module.weight.numpy().tolist() == [[1, 2]]


def test_gradients_have_the_names_and_the_layout_of_the_weights(device):
    module = fill(MultiHeadAttention(4, 2)).to(device, np.float64)
    module.output.bias.requires_grad = False
    module.key.bias.requires_grad = False
    rename = {"qkv": Fused(("query", "key", "value"), transpose=True)}
    assert to_pytorch(module, rename=rename, gradients=True) == {}
    x = Tensor(np.random.default_rng(0).normal(size=(2, 3, 4)), device=device)
    (module(x, x, x) ** 2).sum().backward()
    found = arrays(to_pytorch(module, rename=rename, gradients=True))
    assert found.keys() == {"qkv.weight", "qkv.bias", "out_proj.weight"}
    weights = [to_numpy(getattr(module, name).weight.grad.data) for name in ("query", "key", "value")]
    assert np.array_equal(found["qkv.weight"], np.concatenate(weights).T)
    assert np.array_equal(found["qkv.bias"][4:8], np.zeros(4))
    for tensor in to_pytorch(module, gradients=True).values():
        tensor.copy_(minigrad.zeros_like(tensor))
    assert np.array_equal(to_numpy(module.query.weight.grad.data), weights[0])  # they were copies
