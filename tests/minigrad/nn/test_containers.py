"""ModuleList and Sequential."""

import numpy as np

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
