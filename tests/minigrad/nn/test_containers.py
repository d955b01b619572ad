"""ModuleList and Sequential."""

import numpy as np
import pytest

from minigrad import Tensor, nn


def test_a_module_list_reads_like_a_list():
    a, b, c = nn.Linear(1, 2), nn.ReLU(), nn.GELU()
    modules = nn.ModuleList([a, b])
    assert modules.append(c) is modules
    assert len(modules) == 3
    assert list(modules) == [a, b, c]
    assert modules[0] is a
    assert modules[-1] is c
    assert list(modules[1:]) == [b, c]
    assert isinstance(modules[1:], nn.ModuleList)
    assert c in modules
    modules[1] = a
    assert list(modules) == [a, a, c]
    assert modules.extend([b]) is modules
    assert [name for name, _ in modules.named_children()] == ["0", "1", "2", "3"]


def test_ten_and_more_stay_in_order():
    modules = nn.ModuleList(nn.Linear(1, i + 1) for i in range(12))
    assert [module.out_features for module in modules] == list(range(1, 13))
    assert list(modules.state_dict())[-1] == "11.bias"


def test_a_slice_shares_its_modules():
    modules = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])
    assert modules[:1][0] is modules[0]


@pytest.mark.parametrize("index", [2, -3])
def test_an_index_out_of_range_is_named(index):
    modules = nn.ModuleList([nn.ReLU(), nn.ReLU()])
    with pytest.raises(IndexError, match=f"ModuleList: index {index} is out of range for 2 modules"):
        modules[index]
    with pytest.raises(IndexError, match="out of range"):
        modules[index] = nn.ReLU()


@pytest.mark.parametrize(
    "add",
    [
        lambda modules: modules.append(max),
        lambda modules: modules.extend([nn.ReLU, 3]),
        lambda modules: modules.__setitem__(0, None),
        lambda modules: nn.Sequential([nn.ReLU()]),
    ],
)
def test_only_modules(add):
    with pytest.raises(TypeError, match="expected a Module, got"):
        add(nn.ModuleList([nn.ReLU()]))


def test_a_module_list_is_not_called():
    with pytest.raises(TypeError, match="loop over its modules, or use Sequential"):
        nn.ModuleList([nn.ReLU()])(1)


def test_sequential_composes():
    first, second = nn.Linear(3, 2), nn.Linear(2, 1)
    model = nn.Sequential(first, nn.ReLU(), second)
    x = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(model(x).numpy(), second(nn.ReLU()(first(x))).numpy())
    assert isinstance(model[:2], nn.Sequential)
    np.testing.assert_array_equal(model[:1](x).numpy(), first(x).numpy())
    assert nn.Sequential()(x) is x
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
