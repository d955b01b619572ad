"""Module: what is found where, in which order, and what moving, freezing, copying and loading do."""

import copy
import re

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn

from tests.minigrad.nn.model import BLOCK, NAMES, STATE, Block, Model
from tests.minigrad.ops.row import every_fact

IDS = np.array([[0, 4], [2, 2]])


def names(pairs):
    return [name for name, _ in pairs]


# --- What is found


class Forgetful(nn.Module):
    def __init__(self):  # without super().__init__()
        self.part = nn.Linear(2, 1)
        self.register_buffer("table", minigrad.ones((2,)))


def changed(module, **attributes):
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


SHARED, THREE = nn.Linear(2, 2), [nn.Linear(1, 2), nn.ReLU(), nn.GELU()]
FACTS = {**globals(), "re": re, "BLOCK": BLOCK, "STATE": STATE, "Block": Block, "model": Model(),
         "twice": nn.Sequential(SHARED, nn.ReLU(), SHARED),
         "modules": nn.ModuleList(THREE[:2]).append(THREE[2]), "replaced": nn.ModuleList(THREE[:2])}


@every_fact("""
    names(model.named_parameters()) == NAMES
    names(model.named_parameters(remove_duplicate=False)) == [*NAMES, "out.weight"]
    model.num_parameters() == 5 * 3 + 2 * (3 * 3 + 3 + 3)
    names(model.named_buffers()) == ["count", "table", "blocks.0.offset", "blocks.1.offset"]
    names(model.named_modules())[:5] == ["", "embedding", "blocks", "blocks.0", "blocks.0.linear"]
    names(model.named_children()) == ["embedding", "blocks", "out"]
    list(model.state_dict()) == STATE
    not any(tensor.requires_grad for tensor in model.state_dict().values())
    model.state_dict()["out.weight"].data is model.state_dict()["embedding.weight"].data is model.out.weight.data
    names(twice.named_modules()) == ["", "0", "1"]
    names(twice.named_modules(remove_duplicate=False)) == ["", "0", "1", "2"]
    list(twice.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    list(Forgetful().state_dict()) == ["table", "part.weight", "part.bias"]
    names(changed(Block(), scale=None, linear=nn.Linear(3, 1, bias=False)).named_parameters()) == ["linear.weight"]
    "later" in names(changed(Model(), later=minigrad.ones((2,))).named_buffers())
    changed(Block(), offset=minigrad.zeros((3,))).state_dict()["offset"].tolist() == [0, 0, 0]
    changed(Block(), parts=["anything but modules"]).parts == ["anything but modules"]
    (len(modules), list(modules)) == (3, THREE)
    [modules[0], modules[-1], modules[-3]] == [THREE[0], THREE[2], THREE[0]]
    isinstance(twice[:2], nn.Sequential) and list(twice[:2]) == [SHARED, twice[1]]
    replaced.__setitem__(1, SHARED) or list(replaced) == [THREE[0], SHARED]
    type(model.out.weight * 2.0) is type(model.out.weight.detach()) is Tensor
    re.findall(r"\\(([\\d-]+)\\): ", repr(nn.Sequential(*THREE, *THREE[2:]))) == ["0", "1", "2-3"]
""")
def test_what_is_found_and_in_which_order(fact):
    """A shared part once, parents first; a repr joins children that are alike and no others."""
    assert eval(fact, FACTS)  # noqa: S307 - of our own writing


# --- Modes and gradients


def test_train_and_eval_reach_everything():
    model = Model()
    assert all(module.training for module in model.modules())
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model.blocks[0].train()
    assert [block.training for block in model.blocks] == [True, False]
    assert model.blocks[0].drop.training


def test_a_block_of_evaluation_covers_every_module_and_changes_none():
    class Own(nn.Dropout):
        def forward(self, x):
            return super().forward(x) + (1 if self.training else 2)

    model, x = nn.Sequential(nn.Dropout(0.5), Own(0.5)), minigrad.ones((100,))
    model[0].register_forward_hook(lambda module, args, output: output + (10 if module.training else 20))
    vars(model[1])["training"] = True  # as in the state of a module that was pickled or copied
    with nn.evaluating():
        copied = copy.deepcopy(model)
        for one in (model, copied, copy.copy(model)):
            assert set(one(x).tolist()) == {23.0}
        model.train()
        assert not model.training
    assert all(module.training for one in (model, copied) for module in one.modules())
    assert len(set(model(x).tolist())) > 1
    assert set(copied.eval()(x).tolist()) == {23.0}


def test_zero_grad_and_freezing():
    model = Model().eval()
    assert model.blocks[1].requires_grad_(False) is model.blocks[1]
    model(IDS).sum().backward()
    with_gradient = [name for name, p in model.named_parameters() if p.grad is not None]
    assert with_gradient == [name for name in NAMES if not name.startswith("blocks.1")]
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.requires_grad_()
    assert all(p.requires_grad for p in model.parameters())


# --- Moving, copying, loading


def test_to_keeps_every_parameter(gpu):
    model = Model().eval()
    expected = model(IDS).numpy()
    model(IDS).sum().backward()
    parts = [*model.parameters(), *model.buffers()]
    for device, dtype in ((gpu, np.dtype("float32")), ("cpu", np.dtype("float64"))):
        assert model.to(device, dtype.name) is model
        found = [*model.parameters(), *model.buffers()]
        assert list(map(id, found)) == list(map(id, parts))
        assert {(t.device, t.dtype) for p in model.parameters() for t in (p, p.grad)} == {(device, dtype)}
        assert (model.table.dtype, model.count.dtype, model.count.device) == (dtype, np.int64, device)
        np.testing.assert_allclose(model(Tensor(IDS, device=device)).numpy(), expected, rtol=1e-5)
    assert model.out.weight is model.embedding.weight


def test_deepcopy_is_independent_and_keeps_ties():
    model = Model().eval()
    twin = copy.deepcopy(model)
    assert repr(twin) == repr(model)
    assert twin.out.weight is twin.embedding.weight
    assert type(twin.out.weight) is nn.Parameter
    before = model(IDS).tolist()
    assert twin(IDS).tolist() == before
    for p in twin.parameters():
        p.copy_(p.numpy() + 1)
    assert model(IDS).tolist() == before != twin(IDS).tolist()


def as_arrays(state):
    return {name: tensor.numpy().copy() for name, tensor in state.items()}


def assert_same(state, arrays):
    for name, array in arrays.items():
        np.testing.assert_array_equal(state[name].numpy(), array)


def test_load_state_dict_in_place(device):
    source, target = Model(), Model().to(device)
    parameters, arrays = list(target.parameters()), as_arrays(source.state_dict())
    memory, loss = [p.data for p in parameters], (parameters[1] * parameters[1]).sum()
    assert target.load_state_dict(arrays) == ([], [])
    assert all(p.data is m for p, m in zip(parameters, memory, strict=True))
    assert_same(target.state_dict(), arrays)
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()
    assert target.load_state_dict(source.state_dict()) == ([], [])


def test_not_strict():
    model, state = Model(), as_arrays(Model().state_dict())
    left_out = state.pop("blocks.0.scale")
    keys = model.load_state_dict({**state, "more": left_out}, strict=False)
    assert keys == (["blocks.0.scale"], ["more"])
    assert_same(model.state_dict(), state)


WRONG = [  # what takes the place of a value (None: nothing), and what is said of it
    ("blocks.1.scale", None, "missing: blocks.1.scale"),
    ("a.b", np.ones(1), "unexpected: a.b"),
    ("blocks.0.scale", np.ones((3, 1), np.float32), "blocks.0.scale: shape (3, 1) given, (3,) needed"),
    ("blocks.0.linear.bias", np.ones(3), "blocks.0.linear.bias: dtype float64 given, float32 needed"),
    ("out.weight", np.ones((5, 3), np.float32), "out.weight: differs from embedding.weight"),
]


def test_a_state_that_does_not_fit_changes_nothing():
    """All its problems are listed."""
    model, state = Model(), as_arrays(Model().state_dict())
    before = as_arrays(model.state_dict())
    state |= {name: value for name, value, _ in WRONG}
    with pytest.raises(ValueError, match=r"^Model.load_state_dict: ") as caught:
        model.load_state_dict({name: value for name, value in state.items() if value is not None})
    assert all(said in str(caught.value) for _, _, said in WRONG)
    assert_same(model.state_dict(), before)
