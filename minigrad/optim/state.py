"""State that an optimizer is to go on from: does it fit the parameters?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def checked_state(saved: Mapping[Any, Any], expected: Sequence[tuple[set[str], tuple[int, ...]]],
                  where: str) -> dict[int, dict[str, Any]]:
    """The saved state by position, its counts of steps as ints; ValueError, beginning with `where`, if it does not fit.

    Args:
        saved: what `Optimizer.state_dict` has under ``"state"``; its keys may be strings.
        expected: the names of each parameter's state, "step" among them, and the parameter's shape.
        where: the function that was called.
    """
    state: dict[int, dict[str, Any]] = {}
    for key, entry in saved.items():
        i = int(key)
        if not 0 <= i < len(expected):
            raise ValueError(f"{where}: state for parameter {i}, but there are {len(expected)} parameters")
        names, shape = expected[i]
        if entry.keys() != names:
            raise ValueError(f"{where}: parameter {i} needs {sorted(names)}, the saved state has {sorted(entry)}")
        for name in names - {"step"}:
            if tuple(entry[name].shape) != tuple(shape):
                raise ValueError(
                    f"{where}: {name} of parameter {i} has shape {tuple(entry[name].shape)}, the parameter has "
                    f"{tuple(shape)}"
                )
        state[i] = {**entry, "step": int(entry["step"])}
    return state
