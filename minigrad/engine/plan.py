"""How the rules of a primitive are called: for each set of inputs that need gradients, worked out once and kept."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from minigrad.engine.rules import Rules


Pick = Callable[[tuple[Any, ...]], tuple[Any, ...]]


class Call(NamedTuple):
    """One input's rule, ready to run: ``function(*pick((g, needs, *saved)))``, or ``function(g)`` if `pick` is None."""

    name: str
    function: Callable[..., Any]
    pick: Pick | None
    accumulate: Callable[..., None] | None
    accumulate_pick: Pick | None


def picker(positions: Sequence[int]) -> Pick | None:
    """A function from a tuple to the tuple of its elements at `positions`; None for the first element alone."""
    if len(positions) > 1:
        return operator.itemgetter(*positions)
    if not positions:
        return lambda values: ()
    return None if positions[0] == 0 else lambda values: (values[positions[0]],)


def run_rule(function: Callable[..., Any], pick: Pick | None, values: tuple[Any, ...]) -> Any:
    """What a rule returns for these values of g, needs and what was saved."""
    return function(values[0]) if pick is None else function(*pick(values))


class Plan:
    """What recording a primitive with a given set of inputs that need gradients keeps, and how its rules are called.

    ``expands``: a composition is recorded in the node's place under ``create_graph``; ``recomputes``: in any backward.
    """

    __slots__ = ("calls", "expands", "joint", "keep", "names", "needs", "recomputes", "wanted")

    def __init__(self, needs: Any, wanted: tuple[int, ...], names: tuple[str, ...], keep: tuple[tuple[str, int], ...],
                 calls: tuple[Call, ...], joint: tuple[Callable[..., Any], Pick | None] | None,
                 expands: bool, recomputes: bool = False) -> None:
        self.needs, self.wanted, self.names, self.keep = needs, wanted, names, keep
        self.calls, self.joint, self.expands, self.recomputes = calls, joint, expands, recomputes

    def select(self, primitive: Rules, results: Sequence[Any]) -> list[Any]:
        """Of a joint rule's results, those of the inputs that need a gradient."""
        if not isinstance(results, (tuple, list)) or len(results) != len(self.needs):
            raise TypeError(f"{primitive.name}: its joint gradient rule must return one gradient for each of its "
                            f"{len(self.needs)} inputs (None where none is needed)")
        return [results[i] for i in self.wanted]


class Needs:
    """Which inputs require a gradient, by name: ``needs.weight``; in the order of the inputs when iterated."""

    def __init__(self, by_name: dict[str, bool]) -> None:
        self.__dict__.update(by_name)

    def __len__(self) -> int:
        return len(self.__dict__)

    def __iter__(self) -> Iterator[bool]:
        return iter(self.__dict__.values())

    def __getattr__(self, name: str) -> bool:  # a name that is no input: an error that lists them
        raise AttributeError(f"needs has {', '.join(self.__dict__)}, not {name!r}")
