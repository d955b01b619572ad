"""ModuleList, Sequential, ModuleDict and ParameterList."""

import numpy as np
import pytest

from minigrad import Tensor, nn


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
    assert modules.extend([b]) is modules
    assert [name for name, _ in modules.named_children()] == ["0", "1", "2", "3"]


def test_ten_and_more_stay_in_order():
    modules = nn.ModuleList(nn.Linear(1, i + 1) for i in range(12))
    assert [module.out_features for module in modules] == list(range(1, 13))
    assert list(modules.state_dict())[-1] == "11.bias"


@pytest.mark.parametrize("index", [2, -3])
def test_an_index_out_of_range_is_named(index):
    modules = nn.ModuleList([nn.ReLU(), nn.ReLU()])
    with pytest.raises(IndexError, match=f"ModuleList: index {index} .* 2 modules"):
        modules[index]
    with pytest.raises(IndexError, match="out of range"):
        modules[index] = nn.ReLU()


@pytest.mark.parametrize("add", [
    lambda modules: modules.append(max), lambda modules: modules.extend([nn.ReLU, 3]),
    lambda modules: modules.__setitem__(0, None), lambda modules: nn.Sequential([nn.ReLU()]),
])
def test_only_modules(add):
    with pytest.raises(TypeError, match="expected a Module, got"):
        add(nn.ModuleList([nn.ReLU()]))


@pytest.mark.parametrize("holder", [nn.ModuleList([nn.ReLU()]), nn.ModuleDict(), nn.ParameterList()])
def test_what_is_not_called(holder):
    with pytest.raises(TypeError, match=f"{type(holder).__name__} cannot be called"):
        holder(1)


def test_sequential_composes():
    first, second = nn.Linear(3, 2), nn.Linear(2, 1)
    model = nn.Sequential(first, nn.ReLU(), second)
    x = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(model(x).numpy(), second(nn.ReLU()(first(x))).numpy())
    assert isinstance(model[:2], nn.Sequential)
    np.testing.assert_array_equal(model[:1](x).numpy(), first(x).numpy())
    assert nn.Sequential()(x) is x
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_a_module_dict_reads_like_a_dictionary():
    a, b, c = nn.Linear(1, 2), nn.ReLU(), nn.Sequential()
    modules = nn.ModuleDict({"first": a, "second": b})
    modules["third"] = c
    assert list(modules) == list(modules.keys()) == ["first", "second", "third"]
    assert list(modules.values()) == [a, b, c]
    assert list(modules.items()) == [("first", a), ("second", b), ("third", c)]
    assert len(modules) == 3
    assert modules["second"] is b
    assert "third" in modules
    assert "training" not in modules
    modules.update([("second", a)])
    assert modules["second"] is a
    assert list(modules.state_dict()) == ["first.weight", "first.bias", "second.weight", "second.bias"]
    del modules["third"], modules["first"]
    assert list(modules) == ["second"]


@pytest.mark.parametrize(("name", "module", "error"), [
    ("a", max, TypeError), (1, nn.ReLU(), TypeError), ("", nn.ReLU(), KeyError), ("a.b", nn.ReLU(), KeyError),
    ("train", nn.ReLU(), KeyError), ("training", nn.ReLU(), KeyError),
])
def test_what_a_module_dict_does_not_hold(name, module, error):
    modules = nn.ModuleDict()
    with pytest.raises(error, match="ModuleDict"):
        modules[name] = module
    assert modules.training is True
    assert len(modules) == 0


def test_a_name_that_a_module_dict_lacks():
    modules = nn.ModuleDict({"a": nn.ReLU(), "b": nn.ReLU()})
    with pytest.raises(KeyError, match=r"'c'.* 'a', 'b'"):
        modules["c"]
    with pytest.raises(KeyError, match="'training'"):
        del modules["training"]


def test_a_parameter_list_is_found_and_learns():
    class Powers(nn.Module):
        def __init__(self):
            super().__init__()
            self.factors = nn.ParameterList([np.ones(2, np.float32), nn.Parameter(np.zeros(2, np.float32))])

        def forward(self, x):
            return sum(factor * x**i for i, factor in enumerate(self.factors))

    module = Powers()
    assert [name for name, _ in module.named_parameters()] == ["factors.0", "factors.1"]
    module(Tensor([2.0, 3.0])).sum().backward()
    np.testing.assert_array_equal(module.factors[1].grad.numpy(), [2, 3])


def test_a_parameter_list_reads_like_a_list():
    a, b = nn.Parameter(np.zeros(1)), nn.Parameter(np.ones(2))
    parameters = nn.ParameterList([a])
    assert parameters.append(b) is parameters
    assert len(parameters) == 2
    assert next(iter(parameters)) is a
    assert parameters[-1] is b
    parameters[0] = b
    assert parameters[0] is b
    parameters[-2] = Tensor([5.0])
    assert isinstance(parameters[0], nn.Parameter)
    with pytest.raises(IndexError):
        parameters[2]
    with pytest.raises(IndexError):
        parameters[2] = a
