"""Checkpoints with names of their own: a map from their names to the names here, which is read in both directions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any

import minigrad
from minigrad import Tensor
from minigrad.device import on_device_of


@dataclass(frozen=True)
class Fused:
    """One tensor of theirs that holds several parameters here, such as the weights of query, key and value.

    Attributes:
        names: of the parameters here, in the order in which they are stacked along the first axis.
        transpose: whether a matrix of theirs is (in, out), as that of GPT-2's ``Conv1D``; ours are (out, in).
    """

    names: tuple[str, ...]
    transpose: bool = False

    def shape(self, parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The shape of their tensor, given those of the parameters."""
        joined = (sum(part[0] for part in parts), *parts[0][1:]) if len(parts) > 1 else tuple(parts[0])
        if len({part[1:] for part in parts}) > 1:
            raise ValueError(f"Fused: {', '.join(self.names)} cannot be stacked, with shapes "
                             f"{', '.join(map(str, parts))}")
        return joined[::-1] if self._turns(joined) else joined

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Their tensor, which shares no memory with the parameters."""
        self.shape([part.shape for part in parts])
        joined = minigrad.concatenate(parts) if len(parts) > 1 else parts[0].clone()
        return joined.T.clone() if self._turns(joined.shape) else joined

    def split(self, array: Any, parts: Sequence[tuple[int, ...]]) -> list[Any]:
        """The parameters, of the shapes `parts`, in a raw array that has the shape of their tensor."""
        with on_device_of(array):
            if self._turns(array.shape):
                array = array.T
            if len(parts) == 1:
                return [array]  # which may have no axis
            return [array[start:end] for start, end in pairwise(accumulate((part[0] for part in parts), initial=0))]

    def _turns(self, shape: tuple[int, ...]) -> bool:
        return self.transpose and len(shape) == 2


def transposed(name: str) -> Fused:
    """A matrix (in, out) of theirs, such as that of GPT-2's ``Conv1D``, for the parameter `name` here, (out, in)."""
    return Fused((name,), transpose=True)


Rename = Mapping[str, str | Fused | None] | Callable[[str], str | None]
Entry = tuple[str, Fused]  # a name of theirs, and the parameters here that it holds
Rule = tuple[str, Fused]  # the same for templates of names


def by_map(entries: Iterable[Entry], rename: Mapping[str, str | Fused | None]) -> Iterator[Entry]:
    """Entries with PyTorch's names, by the names of a map.

    The most specific name here decides: that with the most parts, then that with the fewest ``{}``.
    """
    rules = [(theirs, here if isinstance(here, Fused) else Fused((here,)))
             for theirs, here in rename.items() if here is not None]
    for theirs, fused in rules:
        if any(name.count("{}") != theirs.count("{}") for name in fused.names):
            raise ValueError(f"rename: {theirs!r} and {', '.join(map(repr, fused.names))} must have equally many {{}}")
    single = [rule for rule in rules if len(rule[1].names) == 1]
    for theirs, fused in entries:
        rank, whole = _most_specific(theirs, single)
        apart = [_most_specific(name, rules) for name in fused.names]
        if rank >= max(part[0] for part in apart):
            yield from ((name, replace(to, names=fused.names)) for name, to in whole or [(theirs, fused)])
        else:
            for name, (_, found) in zip(fused.names, apart, strict=True):
                yield from found or [(name, Fused((name,)))]


def by_function(entries: Iterable[Entry], rename: Callable[[str], str | None], given: Iterable[str]) -> Iterator[Entry]:
    """Entries with PyTorch's names, by those names of a state, `given`, that a function takes to names here."""
    theirs: dict[str | None, list[str]] = {}
    for name in given:
        theirs.setdefault(rename(name), []).append(name)
    for name, fused in entries:
        if name not in theirs and not theirs.keys().isdisjoint(fused.names):
            yield from ((their, Fused((own,))) for own in fused.names for their in theirs.get(own, [own]))
        else:
            yield from ((their, fused) for their in theirs.get(name, [name]))


def is_ignored(name: str, rename: Rename | None) -> bool:
    """Whether `rename` says that what is called `name` there has no counterpart here."""
    if isinstance(rename, Mapping):
        return any(here is None and _match(theirs, name) for theirs, here in rename.items())
    return rename is not None and rename(name) is None


def _match(template: str, name: str) -> re.Match[str] | None:
    """A name that is the template, where ``{}`` stands for anything without a dot, or begins with it and a dot."""
    pattern = re.escape(f".{template}" if template else "").replace(r"\{\}", r"([^.]+)")
    return re.fullmatch(rf"{pattern}(|\..*)", f".{name}")


def _most_specific(name: str, rules: list[Rule]) -> tuple[tuple[int, int], list[Entry]]:
    """How specific the best rules for a name here are, and their entries, filled in; several for one that is tied."""
    found: dict[tuple[int, int], list[Entry]] = {}
    for theirs, fused in rules:
        for template in fused.names:
            match = _match(template, name)
            if match:
                *fields, rest = match.groups()
                name_there, *here = ((reduce(lambda text, field: text.replace("{}", field, 1), fields, text) + rest)
                                     .removeprefix(".") for text in (theirs, *fused.names))
                rank = (template.count(".") + bool(template), -template.count("{}"))
                found.setdefault(rank, []).append((name_there, replace(fused, names=tuple(here))))
    return max(found.items(), default=((-1, 0), []))
