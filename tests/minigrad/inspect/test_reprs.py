"""What a debugger prints of these objects is one short line each, however much they hold."""

import numpy as np

import minigrad as mg
from minigrad import Tensor, inspect, nn


def test_every_repr_is_one_short_line():
    model = nn.Sequential(nn.Linear(64, 64), nn.Sequential(nn.ReLU(), nn.Linear(64, 64)))
    with mg.profile() as profile, inspect.record_tape() as tape, inspect.memory_meter() as meter:
        model(Tensor(np.ones((50, 64), np.float32))).sum().backward()
    entry = next(iter(tape.entries.values()))
    shown = (profile, *profile.spans, tape, *tape.entries.values(), *tape.leaves.values(), entry.call, meter,
             inspect.draw(tape))
    for found in map(repr, shown):
        assert len(found) < 150
        assert "\n" not in found
        assert " at 0x" not in found
