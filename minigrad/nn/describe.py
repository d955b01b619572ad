"""The text that a module prints: its tree, with the number of parameters on each line."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minigrad.nn.module import Module


def describe(module: Module, note: str = "parameters") -> str:
    """One line for a leaf, else an indented block: what it says of itself, then its children, one in a line.

    Equal numbered neighbours share one, ``(0-5): 6 x …``.
    """
    count = module.num_parameters()
    comment = f"  # {count:,} {note}" if count else ""
    name, extra = type(module).__name__, module.extra_repr()
    parts = []
    # Children that are not numbered never share a line: their names say something.
    runs = groupby(
        module.named_children(),
        key=lambda pair: (pair[0] if not pair[0].isdigit() else "", describe(pair[1])),
    )
    for (_, text), run in runs:
        children = list(run)
        first, last = children[0], children[-1]
        if len(children) == 1:
            label = f"({first[0]}): {text}"
        else:
            label = f"({first[0]}-{last[0]}): {len(children)} x {describe(first[1], 'parameters each')}"
        parts.append("  " + label.replace("\n", "\n  "))
    if not parts:
        return f"{name}({extra}){comment}"
    return "\n".join([f"{name}({comment}", *([f"  {extra}"] if extra else []), *parts, ")"])
