"""Each schedule as a table of steps against its closed form."""

import json
import math

import numpy as np
import pytest

from minigrad import Tensor, optim
from minigrad.optim import LambdaLR

from tests.minigrad.ops.row import function, table

RATE = 0.25


def make(lr=RATE):
    return optim.SGD([{"params": [Tensor(np.ones(2), requires_grad=True)], "lr": lr}], lr=1.0)


def rates(optimizer, scheduler, updates):
    """The learning rate that each update used, in a loop as users write it."""
    used = []
    for _ in range(updates):
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = Tensor(np.ones(2))
        used.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return used


def cosine(n, warmup, total, least=0):
    decay = (1 + math.cos(math.pi * min(1, (n - warmup) / (total - warmup)))) / 2
    return n / warmup if n <= warmup else least + (1 - least) * decay


TABLE = table("""
    LambdaLR(x, lambda step: 0.5**step)     lambda n: 0.5 ** (n - 1)
    CosineLR(x, 4, 12)                      lambda n: cosine(n, 4, 12)
    CosineLR(x, 3, 9, 0.1)                  lambda n: cosine(n, 3, 9, 0.1)
""", {"cosine": cosine})


@pytest.mark.parametrize(("call", "closed_form"), TABLE)
def test_the_rate_of_every_update(call, closed_form):
    """Also of those that a resumed schedule sets."""
    optimizer, again, schedule = make(), make(), function(call, vars(optim))
    scheduler, resumed = schedule(optimizer), schedule(again)
    used = rates(optimizer, scheduler, 7)
    groups, state = json.loads(json.dumps([optimizer.state_dict()["param_groups"], scheduler.state_dict()]))
    again.load_state_dict({"state": {}, "param_groups": groups})
    resumed.load_state_dict(state)
    rest = rates(optimizer, scheduler, 9)
    assert rates(again, resumed, 9) == rest
    np.testing.assert_allclose(used + rest, [[RATE * closed_form(n)] for n in range(1, 17)], rtol=1e-13, atol=1e-16)


def test_a_group_that_joins_later_has_its_own_initial_rate_and_is_scheduled_at_once():
    optimizer = make(1.0)
    scheduler = LambdaLR(optimizer, lambda step: 0.5**step)
    scheduler.step()
    optimizer.add_param_group({"params": [Tensor(np.ones(1), requires_grad=True)], "lr": 8.0})
    assert scheduler.get_last_lr() == [0.5, 4.0]
    scheduler.step()
    assert scheduler.get_last_lr() == [0.25, 2.0]
