"""Module: what is found where, in which order, and what moving, freezing, copying and printing do."""

import copy
import gc
import weakref

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn, optim
from minigrad.device import DeviceError, to_numpy


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.scale = nn.Parameter(np.ones(3, np.float32))
        self.drop = nn.Dropout(0.5)
        self.register_buffer("offset", minigrad.full((3,), 2.0))

    def forward(self, x):
        return self.drop(self.linear(x) * self.scale + self.offset)


class Model(nn.Module):
    """A tied pair, numbered children, and buffers of both kinds."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.out = nn.Linear(3, 5, bias=False)
        self.out.weight = self.embedding.weight
        self.register_buffer("count", Tensor(np.array([7])))
        self.register_buffer("table", minigrad.zeros((4, 3)), persistent=False)
        self.register_buffer("later", None)
        self.name = "not a part"

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


BLOCK = ["scale", "linear.weight", "linear.bias"]
NAMES = ["embedding.weight", *(f"blocks.{i}.{name}" for i in (0, 1) for name in BLOCK)]
STATE = [
    "count",
    "embedding.weight",
    *(f"blocks.{i}.{name}" for i in (0, 1) for name in ["scale", "offset", "linear.weight", "linear.bias"]),
    "out.weight",
]


# --- what is found --------------------------------------------------------------------------------


def test_a_shared_parameter_is_named_once():
    model = Model()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert len(list(model.parameters())) == len(NAMES)
    assert len({id(p) for p in model.parameters()}) == len(NAMES)
    with_duplicates = dict(model.named_parameters(remove_duplicate=False))
    assert list(with_duplicates) == [*NAMES, "out.weight"]
    assert with_duplicates["out.weight"] is with_duplicates["embedding.weight"]


def test_only_its_own():
    block = Block()
    assert [name for name, _ in block.named_parameters(recurse=False)] == ["scale"]
    assert next(block.parameters(recurse=False)) is block.scale
    assert [name for name, _ in block.named_parameters(prefix="a.b")] == [f"a.b.{name}" for name in BLOCK]


def test_buffers_are_found_but_are_no_parameters():
    model = Model()
    assert [name for name, _ in model.named_buffers()] == ["count", "table", "blocks.0.offset", "blocks.1.offset"]
    assert len(list(model.buffers())) == 4
    model.later = minigrad.ones((2,))
    assert "later" in dict(model.named_buffers())


def test_modules_parents_first():
    model = Model()
    names = [name for name, _ in model.named_modules()]
    assert names[:5] == ["", "embedding", "blocks", "blocks.0", "blocks.0.linear"]
    assert [name for name, _ in model.named_children()] == ["embedding", "blocks", "out"]
    assert [type(child) for child in model.children()] == [nn.Embedding, nn.ModuleList, nn.Linear]
    assert len(list(model.modules())) == len(names) == 10


def test_a_module_in_two_places_is_named_once():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    assert [name for name, _ in model.named_modules()] == ["", "0", "1"]
    assert [name for name, _ in model.named_modules(remove_duplicate=False)] == ["", "0", "1", "2"]
    assert model.num_parameters() == 6
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_num_parameters_counts_a_tied_one_once():
    assert Model().num_parameters() == 5 * 3 + 2 * (3 * 3 + 3 + 3)


def test_deleting_and_replacing():
    block = Block()
    block.scale = None
    assert [name for name, _ in block.named_parameters()] == BLOCK[1:]
    del block.linear
    assert list(block.parameters()) == []
    block.linear = nn.Linear(3, 1, bias=False)
    assert [name for name, _ in block.named_parameters()] == ["linear.weight"]


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind"), [(nn.Parameter(np.ones(1)), "Parameter"), (nn.ReLU(), "ReLU"), (nn.ModuleList(), "ModuleList")]
)
def test_forgetting_super_init_is_named(value, kind):
    class Forgetful(nn.Module):
        def __init__(self):
            self.size = 3
            self.part = value

    with pytest.raises(AttributeError, match=rf"Forgetful.part: cannot assign a {kind} before super\(\).__init__\(\)"):
        Forgetful()


def test_forgetting_super_init_before_a_buffer():
    class Forgetful(nn.Module):
        def __init__(self):
            self.register_buffer("table", minigrad.ones((2,)))

    with pytest.raises(AttributeError, match=r"Forgetful.register_buffer\('table'\): call super"):
        Forgetful()


@pytest.mark.parametrize("wrong", [minigrad.ones((3,)), np.ones(3), 1.0])
def test_a_parameter_is_not_replaced_by_what_would_not_learn(wrong):
    block = Block()
    with pytest.raises(TypeError, match=rf"Block.scale is a Parameter .* got {type(wrong).__name__}; .*copy_"):
        block.scale = wrong
    assert "scale" in dict(block.named_parameters())


def test_a_buffer_stays_a_tensor():
    block = Block()
    with pytest.raises(TypeError, match=r"Block.offset is a buffer .* got ndarray"):
        block.offset = np.ones(3)
    block.offset = minigrad.zeros((3,))
    assert dict(block.named_buffers())["offset"] is block.offset


@pytest.mark.parametrize("hide", [lambda m: [m], lambda m: (1, m), lambda m: {"a": m}])
def test_modules_in_a_plain_container_would_be_lost(hide):
    block = Block()
    with pytest.raises(TypeError, match=r"Block.parts: .* use a ModuleList"):
        block.parts = hide(nn.Linear(1, 1))
    block.parts = hide("anything else")


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("linear", minigrad.ones((1,)), ValueError),
        ("forward", minigrad.ones((1,)), ValueError),
        ("a.b", minigrad.ones((1,)), ValueError),
        ("", minigrad.ones((1,)), ValueError),
        ("fresh", np.ones(1), TypeError),
    ],
)
def test_buffers_have_good_names_and_are_tensors(name, value, error):
    block = Block()
    with pytest.raises(error, match=r"register_buffer"):
        block.register_buffer(name, value)
    assert [n for n, _ in block.named_buffers()] == ["offset"]


def test_a_module_without_forward():
    class Empty(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match=r"Empty must define forward\(\)"):
        Empty()(1)


def test_train_takes_a_bool():
    with pytest.raises(TypeError, match=r"Block.train: mode must be a bool, got str"):
        Block().train("eval")


# --- modes and gradients --------------------------------------------------------------------------


def test_train_and_eval_reach_everything():
    model = Model()
    assert all(module.training for module in model.modules())
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model.blocks[0].train()
    assert [block.training for block in model.blocks] == [True, False]
    assert model.blocks[0].drop.training
    assert model.train() is model
    assert all(module.training for module in model.modules())


def test_zero_grad_and_freezing():
    model = Model().eval()
    model.blocks[1].requires_grad_(False)
    model(np.array([[0, 1]])).sum().backward()
    with_gradient = [name for name, p in model.named_parameters() if p.grad is not None]
    assert with_gradient == [name for name in NAMES if not name.startswith("blocks.1")]
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.requires_grad_()
    assert all(p.requires_grad for p in model.parameters())


def test_results_are_plain_tensors():
    block = Block()
    assert type(block.scale * 2.0) is Tensor
    assert type(block.scale.detach()) is Tensor
    assert nn.Parameter(np.ones(2)).requires_grad
    assert not nn.Parameter(np.ones(2), requires_grad=False).requires_grad
    with pytest.raises(TypeError, match=r"floating"):
        nn.Parameter(np.array([1]))


def test_a_forward_leaves_nothing_behind():
    """No module keeps a result: when the output is dropped, so is everything it was made from."""
    model = Model()
    attributes = {name: set(vars(module)) for name, module in model.named_modules()}
    gc.disable()
    try:
        out = model(np.array([[0, 1, 2]]))
        watch = weakref.ref(out)
        del out
        assert watch() is None
    finally:
        gc.enable()
    assert {name: set(vars(module)) for name, module in model.named_modules()} == attributes


def test_apply_visits_children_first():
    order = []
    model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.GELU()))
    assert model.apply(lambda module: order.append(type(module).__name__)) is model
    assert order == ["ReLU", "GELU", "Sequential", "Sequential"]


# --- moving ---------------------------------------------------------------------------------------


def test_to_keeps_every_parameter(stand_in):
    model = Model().eval()
    ids = np.array([[0, 4], [2, 2]])
    expected = model(ids).numpy()
    model(ids).sum().backward()
    parts = [*model.parameters(), *model.buffers()]
    assert model.to("cuda") is model
    assert all(a is b for a, b in zip([*model.parameters(), *model.buffers()], parts, strict=True))
    assert {t.device for t in parts} == {"cuda:0"}
    assert {p.grad.device for p in model.parameters()} == {"cuda:0"}
    assert model.out.weight is model.embedding.weight
    out = model(Tensor(ids, device="cuda"))
    assert out.device == "cuda:0"
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)
    model.to("cpu")
    np.testing.assert_array_equal(model(ids).numpy(), expected)


def test_to_where_it_is_changes_nothing():
    block = Block()
    memory = [p.data for p in block.parameters()]
    block.to("cpu", dtype=np.float32)
    assert all(p.data is m for p, m in zip(block.parameters(), memory, strict=True))


def test_to_dtype_leaves_integers():
    model = Model().eval()
    model(np.array([[1]])).sum().backward()
    model.to(dtype="float64")
    assert {p.dtype for p in model.parameters()} == {np.dtype("float64")}
    assert {p.grad.dtype for p in model.parameters()} == {np.dtype("float64")}
    assert model.table.dtype == np.float64
    assert model.count.dtype == np.int64
    assert model(np.array([[1]])).dtype == np.float64


def test_mistakes_in_to():
    block = Block()
    with pytest.raises(ValueError, match=r"unknown device 'gpu'"):
        block.to("gpu")
    with pytest.raises(TypeError, match=r"Block.to: dtype must be floating, got int64"):
        block.to(dtype=np.int64)
    if not minigrad.device.cuda_status().devices:
        with pytest.raises(DeviceError):
            block.to("cuda")
    assert {t.device for t in block.parameters()} == {"cpu"}


# --- copies ---------------------------------------------------------------------------------------


def test_deepcopy_is_independent_and_keeps_ties():
    model = Model().eval()
    twin = copy.deepcopy(model)
    assert repr(twin) == repr(model)
    assert twin.out.weight is twin.embedding.weight
    assert type(twin.out.weight) is nn.Parameter
    assert [name for name, _ in twin.named_buffers()] == [name for name, _ in model.named_buffers()]
    ids, before = np.array([[1, 2]]), model(np.array([[1, 2]])).numpy().copy()
    np.testing.assert_array_equal(twin(ids).numpy(), before)
    optimizer = optim.SGD(twin.parameters(), lr=1.0)
    twin(ids).sum().backward()
    optimizer.step()
    np.testing.assert_array_equal(model(ids).numpy(), before)
    assert all(p.grad is None for p in model.parameters())
    assert np.abs(twin(ids).numpy() - before).max() > 0.1


# --- text -----------------------------------------------------------------------------------------


def test_repr_shows_the_tree_with_counts():
    assert repr(Model()).splitlines() == [
        "Model(  # 45 parameters",
        "  (embedding): Embedding(5, 3)  # 15 parameters",
        "  (blocks): ModuleList(  # 30 parameters",
        "    (0-1): 2 x Block(  # 15 parameters each",
        "      (linear): Linear(in_features=3, out_features=3, bias=True)  # 12 parameters",
        "      (drop): Dropout(p=0.5)",
        "    )",
        "  )",
        "  (out): Linear(in_features=3, out_features=5, bias=False)  # 15 parameters",
        ")",
    ]


def test_repr_of_what_has_children_and_something_to_say_of_itself():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query = nn.Linear(2, 2, bias=False)

        def extra_repr(self):
            return "num_heads=4"

    assert repr(nn.Sequential(Attention(), Attention())).splitlines() == [
        "Sequential(  # 8 parameters",
        "  (0-1): 2 x Attention(  # 4 parameters each",
        "    num_heads=4",
        "    (query): Linear(in_features=2, out_features=2, bias=False)  # 4 parameters",
        "  )",
        ")",
    ]


def test_repr_folds_only_equal_numbered_neighbours():
    model = nn.Sequential(nn.Linear(1000, 2), nn.ReLU(), nn.ReLU(), nn.Linear(1000, 2))
    model.extra = nn.ReLU()
    assert repr(model).splitlines() == [
        "Sequential(  # 4,004 parameters",
        "  (0): Linear(in_features=1000, out_features=2, bias=True)  # 2,002 parameters",
        "  (1-2): 2 x ReLU()",
        "  (3): Linear(in_features=1000, out_features=2, bias=True)  # 2,002 parameters",
        "  (extra): ReLU()",
        ")",
    ]


# --- state ----------------------------------------------------------------------------------------


def as_arrays(state):
    return {name: to_numpy(tensor.data).copy() for name, tensor in state.items()}


def test_state_dict_has_each_name_of_a_tied_parameter():
    model = Model()
    state = model.state_dict()
    assert list(state) == STATE
    assert not any(tensor.requires_grad for tensor in state.values())
    assert state["out.weight"].data is state["embedding.weight"].data is model.out.weight.data


def test_load_state_dict_in_place(device):
    source, target = Model(), Model().to(device)
    memory = [p.data for p in target.parameters()]
    assert target.load_state_dict(as_arrays(source.state_dict())) == ([], [])
    assert all(p.data is m for p, m in zip(target.parameters(), memory, strict=True))
    for name, array in as_arrays(target.state_dict()).items():
        np.testing.assert_array_equal(array, as_arrays(source.state_dict())[name])
    assert target.load_state_dict(source.state_dict()) == ([], [])


def test_loading_counts_as_a_change():
    block = Block()
    loss = (block.scale * block.scale).sum()
    block.load_state_dict(Block().state_dict())
    with pytest.raises(RuntimeError, match=r"changed in place"):
        loss.backward()


def test_not_strict():
    model = Model()
    state = as_arrays(Model().state_dict())
    del state["blocks.0.scale"]
    state["more"] = np.ones(1)
    keys = model.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["blocks.0.scale"]
    assert keys.unexpected_keys == ["more"]
    np.testing.assert_array_equal(model.blocks[1].linear.weight.data, state["blocks.1.linear.weight"])


def change(**values):
    return lambda state: state.update({name.replace("__", "."): value for name, value in values.items()})


WRONG = {
    "missing": (lambda s: s.pop("blocks.1.scale"), ValueError, "missing: blocks.1.scale"),
    "unexpected": (change(a__b=np.ones(1)), ValueError, "unexpected: a.b"),
    "shape": (
        change(blocks__0__scale=np.ones((3, 1), np.float32)),
        ValueError,
        r"blocks.0.scale: shape \(3, 1\) given, \(3,\) needed",
    ),
    "dtype": (
        change(blocks__0__scale=np.ones(3)),
        ValueError,
        "blocks.0.scale: dtype float64 given, float32 needed; cast",
    ),
    "tied": (
        change(out__weight=np.ones((5, 3), np.float32)),
        ValueError,
        "out.weight: differs from embedding.weight, with which it is tied",
    ),
    "no array": (change(count=[7]), TypeError, "count must be a tensor or an array, got list"),
}


@pytest.mark.parametrize(("spoil", "error", "message"), WRONG.values(), ids=WRONG)
def test_a_state_that_does_not_fit_changes_nothing(spoil, error, message):
    model, state = Model(), as_arrays(Model().state_dict())
    before = as_arrays(model.state_dict())
    spoil(state)
    with pytest.raises(error, match=message):
        model.load_state_dict(state)
    for name, array in as_arrays(model.state_dict()).items():
        np.testing.assert_array_equal(array, before[name])


def test_all_problems_are_listed_at_once():
    state = as_arrays(Model().state_dict())
    for spoil, error, _ in WRONG.values():
        if error is ValueError:
            spoil(state)
    with pytest.raises(ValueError, match=r"(?s)Model.load_state_dict.*missing.*unexpected.*differs"):
        Model().load_state_dict(state)
