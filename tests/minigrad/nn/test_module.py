"""Module: what is found where, in which order, and what moving, freezing and copying do."""

import copy

import numpy as np

import minigrad
from minigrad import Tensor, nn, optim

from tests.minigrad.nn.model import BLOCK, NAMES, Block, Model

# --- What is found


def test_parameters_and_buffers_a_shared_one_once():
    model, block = Model(), Block()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert len({id(p) for p in model.parameters()}) == len(list(model.parameters())) == len(NAMES)
    with_duplicates = dict(model.named_parameters(remove_duplicate=False))
    assert list(with_duplicates) == [*NAMES, "out.weight"]
    assert with_duplicates["out.weight"] is with_duplicates["embedding.weight"]
    assert model.num_parameters() == 5 * 3 + 2 * (3 * 3 + 3 + 3)
    assert [name for name, _ in block.named_parameters()] == BLOCK
    block.scale = None
    block.linear = nn.Linear(3, 1, bias=False)
    assert [name for name, _ in block.named_parameters()] == ["linear.weight"]
    assert [name for name, _ in model.named_buffers()] == ["count", "table", "blocks.0.offset", "blocks.1.offset"]
    model.later = minigrad.ones((2,))
    assert "later" in dict(model.named_buffers())


def test_modules_parents_first_and_one_in_two_places_once():
    model = Model()
    names = [name for name, _ in model.named_modules()]
    assert names[:5] == ["", "embedding", "blocks", "blocks.0", "blocks.0.linear"]
    assert [name for name, _ in model.named_children()] == ["embedding", "blocks", "out"]
    assert len(list(model.modules())) == len(names) == 10
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    assert [name for name, _ in model.named_modules()] == ["", "0", "1"]
    assert [name for name, _ in model.named_modules(remove_duplicate=False)] == ["", "0", "1", "2"]
    assert model.num_parameters() == 6
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_forgetting_super_init_does_no_harm():
    class Forgetful(nn.Module):
        def __init__(self):
            self.part = nn.Linear(2, 1)
            self.register_buffer("table", minigrad.ones((2,)))

    assert list(Forgetful().state_dict()) == ["table", "part.weight", "part.bias"]
    assert list(nn.Linear(2, 1).named_buffers()) == []


def test_a_buffer_may_be_assigned_and_is_not_learnt():
    block = Block()
    block.offset = minigrad.zeros((3,))
    assert dict(block.named_buffers())["offset"] is block.offset
    block.offset = nn.Parameter(np.zeros(3, np.float32))
    assert [name for name, _ in block.named_parameters()] == BLOCK
    block.parts = ["anything but modules"]


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
            np.testing.assert_array_equal(one(x).numpy(), x.numpy() + 22)
        model.train()
        assert not model.training
    assert all(module.training for one in (model, copied) for module in one.modules())
    assert len(set(model(x).numpy())) > 1
    copied.eval()
    assert copied(x).numpy().tolist() == [23.0] * 100


def test_zero_grad_and_freezing():
    model = Model().eval()
    assert model.blocks[1].requires_grad_(False) is model.blocks[1]
    model(np.array([[0, 1]])).sum().backward()
    with_gradient = [name for name, p in model.named_parameters() if p.grad is not None]
    assert with_gradient == [name for name in NAMES if not name.startswith("blocks.1")]
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.requires_grad_()
    assert all(p.requires_grad for p in model.parameters())
    assert not nn.Parameter(np.ones(2), requires_grad=False).requires_grad
    assert type(model.out.weight * 2.0) is type(model.out.weight.detach()) is Tensor


# --- Moving and copying


def test_to_keeps_every_parameter(gpu):
    model = Model().eval()
    ids = np.array([[0, 4], [2, 2]])
    expected = model(ids).numpy()
    model(ids).sum().backward()
    parts = [*model.parameters(), *model.buffers()]
    assert model.to(gpu) is model
    assert all(a is b for a, b in zip([*model.parameters(), *model.buffers()], parts, strict=True))
    assert {t.device for t in parts} == {p.grad.device for p in model.parameters()} == {gpu}
    assert model.out.weight is model.embedding.weight
    out = model(Tensor(ids, device=gpu))
    assert out.device == gpu
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)
    model.to("cpu")
    np.testing.assert_array_equal(model(ids).numpy(), expected)


def test_to_dtype_leaves_integers():
    model = Model().eval()
    model(np.array([[1]])).sum().backward()
    model.to(dtype="float64")
    assert {t.dtype for p in model.parameters() for t in (p, p.grad)} == {np.dtype("float64")}
    assert model.table.dtype == np.float64
    assert model.count.dtype == np.int64
    assert model(np.array([[1]])).dtype == np.float64


def test_deepcopy_is_independent_and_keeps_ties():
    model = Model().eval()
    twin = copy.deepcopy(model)
    assert repr(twin) == repr(model)
    assert twin.out.weight is twin.embedding.weight
    assert type(twin.out.weight) is nn.Parameter
    ids, before = np.array([[1, 2]]), model(np.array([[1, 2]])).numpy().copy()
    np.testing.assert_array_equal(twin(ids).numpy(), before)
    optimizer = optim.SGD(twin.parameters(), lr=1.0)
    twin(ids).sum().backward()
    optimizer.step()
    np.testing.assert_array_equal(model(ids).numpy(), before)
    assert all(p.grad is None for p in model.parameters())
    assert np.abs(twin(ids).numpy() - before).max() > 0.1


def test_a_repr_joins_children_that_are_alike_and_no_others():
    lines = repr(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.ReLU())).splitlines()[1:-1]
    assert [line.split(": ")[0].strip() for line in lines] == ["(0)", "(1-2)"]


# --- ModuleList and Sequential


def test_a_module_list_reads_like_a_list():
    a, b, c = nn.Linear(1, 2), nn.ReLU(), nn.GELU()
    modules = nn.ModuleList([a, b])
    assert modules.append(c) is modules
    assert len(modules) == 3
    assert list(modules) == [a, b, c]
    assert [modules[0], modules[-1], modules[-3]] == [a, c, a]
    assert isinstance(modules[1:], nn.ModuleList)
    assert list(modules[1:]) == [b, c]
    modules[1] = a
    assert list(modules) == [a, a, c]
    assert [name for name, _ in modules.named_children()] == ["0", "1", "2"]


def test_sequential_composes():
    first, second = nn.Linear(3, 2), nn.Linear(2, 1)
    model = nn.Sequential(first, nn.ReLU(), second)
    x = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(model(x).numpy(), second(nn.ReLU()(first(x))).numpy())
    assert isinstance(model[:2], nn.Sequential)
    np.testing.assert_array_equal(model[:1](x).numpy(), first(x).numpy())
    assert nn.Sequential()(x) is x
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
