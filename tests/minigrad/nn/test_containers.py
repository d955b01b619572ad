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
    assert "third" in modules
    assert "training" not in modules
    modules.update([("second", a)])
    assert modules["second"] is a
    assert list(modules.state_dict()) == ["first.weight", "first.bias", "second.weight", "second.bias"]
    del modules["third"], modules["first"]
    assert list(modules) == ["second"]


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
    np.testing.assert_array_equal(module.factors[-1].grad.numpy(), [2, 3])
    module.factors[-2] = Tensor([5.0])
    assert isinstance(module.factors[0], nn.Parameter)
    assert len(module.factors) == 2


PAIR, BY_NAME = nn.ModuleList([nn.ReLU(), nn.ReLU()]), nn.ModuleDict({"a": nn.ReLU(), "b": nn.ReLU()})
MISTAKES = [
    (lambda: PAIR[2], IndexError, "index 2 .* 2 modules"),
    (lambda: PAIR.__setitem__(-3, nn.ReLU()), IndexError, "index -3"),
    (lambda: PAIR.append(max), TypeError, "expected a Module"),
    (lambda: PAIR.__setitem__(0, None), TypeError, "expected a Module"),
    (lambda: nn.Sequential([nn.ReLU()]), TypeError, "expected a Module"),
    (lambda: BY_NAME["c"], KeyError, "'c'.* 'a', 'b'"),
    (lambda: BY_NAME.__delitem__("training"), KeyError, "'training'"),
    *[(lambda name=name, module=module: BY_NAME.__setitem__(name, module), error, "ModuleDict")
      for name, module, error in (("c", max, TypeError), (1, nn.ReLU(), TypeError), ("", nn.ReLU(), KeyError),
                                  ("a.b", nn.ReLU(), KeyError), ("training", nn.ReLU(), KeyError))],
    *[(lambda holder=holder: holder(1), TypeError, f"{type(holder).__name__} cannot be called")
      for holder in (PAIR, BY_NAME, nn.ParameterList())],
]


@pytest.mark.parametrize(("mistake", "error", "said"), MISTAKES)
def test_mistakes_are_named_and_change_nothing(mistake, error, said):
    with pytest.raises(error, match=said):
        mistake()
    assert len(PAIR) == len(BY_NAME) == 2
    assert BY_NAME.training is True
