"""A layered drawing of a directed acyclic graph, as Sugiyama, Tagawa and Toda (1981) have it.

Four steps: every item gets a rank, below all that it depends on (the longest path); a link over several ranks gets a
bend in each between; the order within the ranks is improved until fewer links cross (barycentres); and every item moves
sideways towards what it is linked to, as far as its neighbours allow (least squares, exact for each rank).

Nothing overlaps, by construction: items keep a distance from their neighbours in the rank, and links run free only in
the gaps between ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Point = tuple[float, float]

GAP_X, GAP_Y = 14.0, 26.0
ORDERINGS, ALIGNMENTS = 12, 40  # sweeps over all ranks


class CycleError(ValueError):
    """What is to be drawn is not acyclic."""


@dataclass(eq=False)
class Item:
    """A rectangle to be placed: `x` and `y` of its upper left corner are the result.

    Attributes:
        pin: "top" for what has to be in the first rank, "bottom" for the last, "title" for the first in the first.
    """

    width: float
    height: float
    pin: str = ""
    x: float = 0.0
    y: float = 0.0
    rank: int = 0
    bend: bool = False


@dataclass(eq=False)
class Link:
    """An edge from the bottom of `source` to the top of `target`; the offsets say where, from their left sides.

    `points` is the result: from the source's bottom to the target's top, downwards. Where two that follow each other
    are not above one another, they are the ends of a gap between ranks.
    """

    source: Item
    target: Item
    source_offset: float
    target_offset: float
    points: list[Point] = field(default_factory=list)


@dataclass(eq=False)
class _Segment:
    """A piece of a link, from one rank to the next."""

    upper: Item
    lower: Item
    upper_offset: float
    lower_offset: float
    weight: float


def arrange(items: Sequence[Item], links: Sequence[Link]) -> tuple[float, float]:
    """Place the items and route the links; returns the width and height of the whole. CycleError for a cycle."""
    if not items:
        return 0.0, 0.0
    _rank(items, links)
    ranks: list[list[Item]] = [[] for _ in range(1 + max(item.rank for item in items))]
    for item in items:
        ranks[item.rank].append(item)
    chains = [_bend(link, ranks) for link in links]
    segments = [segment for chain in chains for segment in chain]
    ranks = _order(ranks, segments)
    _place_x(ranks, segments)
    height = _place_y(ranks)
    tops = [min(item.y for item in rank) for rank in ranks]
    bottoms = [max(item.y + item.height for item in rank) for rank in ranks]
    for link, chain in zip(links, chains, strict=True):
        link.points = _route(chain, tops, bottoms)
    left = min(item.x for rank in ranks for item in rank)
    for rank in ranks:
        for item in rank:
            item.x -= left
    for link in links:
        link.points = [(x - left, y) for x, y in link.points]
    return max(item.x + item.width for rank in ranks for item in rank), height


# ----------------------------------------------------------------- ranks


def _rank(items: Sequence[Item], links: Sequence[Link]) -> None:
    above: dict[int, list[Link]] = {id(item): [] for item in items}
    below: dict[int, list[Link]] = {id(item): [] for item in items}
    for link in links:
        below[id(link.source)].append(link)
        above[id(link.target)].append(link)
    first = 1 if any(item.pin in ("top", "title") for item in items) else 0
    waiting = {id(item): len(above[id(item)]) for item in items}
    ready = [item for item in items if not waiting[id(item)]]
    ordered: list[Item] = []
    while ready:
        item = ready.pop()
        ordered.append(item)
        pinned = item.pin in ("top", "title")
        item.rank = 0 if pinned else max([first, *[link.source.rank + 1 for link in above[id(item)]]])
        for link in below[id(item)]:
            waiting[id(link.target)] -= 1
            if not waiting[id(link.target)]:
                ready.append(link.target)
    if len(ordered) < len(items):
        raise CycleError("the links form a cycle")
    bottom = [item for item in items if item.pin == "bottom"]
    if bottom:
        last = max([item.rank for item in bottom] + [item.rank + 1 for item in items if item.pin != "bottom"])
        for item in bottom:
            item.rank = last
    for item in reversed(ordered):  # what depends on nothing stands right above what it is for
        if not above[id(item)] and below[id(item)] and not item.pin:
            item.rank = min(link.target.rank for link in below[id(item)]) - 1


def _bend(link: Link, ranks: list[list[Item]]) -> list[_Segment]:
    """The pieces of a link, with a bend added to each rank that it passes."""
    chain, upper, offset = [], link.source, link.source_offset
    for rank in range(link.source.rank + 1, link.target.rank):
        bend = Item(2.0, 0.0, rank=rank, bend=True)
        ranks[rank].append(bend)
        chain.append(_Segment(upper, bend, offset, 1.0, 8.0 if upper.bend else 2.0))
        upper, offset = bend, 1.0
    chain.append(_Segment(upper, link.target, offset, link.target_offset, 2.0 if upper.bend else 1.0))
    return chain


# ----------------------------------------------------------------- order within the ranks


def _order(ranks: list[list[Item]], segments: Sequence[_Segment]) -> list[list[Item]]:
    """The order with the fewest crossings that alternating sweeps of barycentres come by."""
    for rank in ranks:
        rank.sort(key=lambda item: item.pin != "title")
    best, fewest = ranks, crossings(ranks, segments)
    for sweep in range(ORDERINGS):
        if not fewest:
            break
        ranks = [list(rank) for rank in ranks]
        downwards = sweep % 2 == 0
        for i in range(1, len(ranks)) if downwards else range(len(ranks) - 2, -1, -1):
            keys = _barycentres(ranks[i], ranks[i - 1 if downwards else i + 1], segments, downwards)
            ranks[i].sort(key=lambda item, keys=keys: (item.pin != "title", keys[id(item)]))  # type: ignore[misc]
        count = crossings(ranks, segments)
        if count < fewest:
            best, fewest = ranks, count
    return best


def _barycentres(rank: Sequence[Item], fixed: Sequence[Item], segments: Sequence[_Segment],
                 downwards: bool) -> dict[int, float]:
    """For each item of `rank` the mean place of what it is linked to in the `fixed` one; its own if to nothing."""
    place = {id(item): float(i) for i, item in enumerate(fixed)}
    pulls: dict[int, list[float]] = {id(item): [] for item in rank}
    for segment in segments:
        moving, other = (segment.lower, segment.upper) if downwards else (segment.upper, segment.lower)
        offset = segment.upper_offset if downwards else segment.lower_offset
        if id(moving) in pulls and id(other) in place:
            pulls[id(moving)].append(place[id(other)] + offset / other.width - 0.5)
    return {id(item): sum(pulls[id(item)]) / len(pulls[id(item)]) if pulls[id(item)] else float(i)
            for i, item in enumerate(rank)}


def crossings(ranks: Sequence[Sequence[Item]], segments: Sequence[_Segment]) -> int:
    """How many pairs of pieces cross, by the order of their ends."""
    place = {id(item): i for rank in ranks for i, item in enumerate(rank)}
    by_rank: dict[int, list[tuple[tuple[int, float], tuple[int, float]]]] = {}
    for s in segments:
        ends = (place[id(s.upper)], s.upper_offset), (place[id(s.lower)], s.lower_offset)
        by_rank.setdefault(s.upper.rank, []).append(ends)
    count = 0
    for ends_of_rank in by_rank.values():
        ends_of_rank.sort()
        for i, (upper, lower) in enumerate(ends_of_rank):
            count += sum(other[1] < lower and other[0] > upper for other in ends_of_rank[i + 1:])
    return count


# ----------------------------------------------------------------- coordinates


def _place_x(ranks: Sequence[list[Item]], segments: Sequence[_Segment]) -> None:
    for rank in ranks:
        x = 0.0
        for item in rank:
            item.x = x
            x += item.width + GAP_X
    to_upper: dict[int, list[_Segment]] = {}
    to_lower: dict[int, list[_Segment]] = {}
    for segment in segments:
        to_upper.setdefault(id(segment.lower), []).append(segment)
        to_lower.setdefault(id(segment.upper), []).append(segment)
    for sweep in range(ALIGNMENTS):
        last = sweep >= ALIGNMENTS - 2
        for rank in ranks if sweep % 2 == 0 else reversed(ranks):
            wanted, weights = [], []
            for item in rank:
                pulls = []
                if sweep % 2 == 0 or last:
                    pulls += [(s.upper.x + s.upper_offset - s.lower_offset, s.weight)
                              for s in to_upper.get(id(item), [])]
                if sweep % 2 or last:
                    pulls += [(s.lower.x + s.lower_offset - s.upper_offset, s.weight)
                              for s in to_lower.get(id(item), [])]
                total = sum(weight for _, weight in pulls)
                wanted.append(sum(x * weight for x, weight in pulls) / total if pulls else item.x)
                weights.append(total or 0.1)
            for item, x in zip(rank, _spread(wanted, weights, [item.width + GAP_X for item in rank]), strict=True):
                item.x = x
    left = min(item.x for rank in ranks for item in rank if item.pin != "title")
    for rank in ranks:
        for title, neighbour in zip(rank, [*rank[1:], None], strict=True):
            if title.pin == "title":  # at the left side of all, or further out, where its neighbour leaves no room
                room = left if neighbour is None else neighbour.x - GAP_X - title.width
                title.x = min(left, room)


def _spread(wanted: Sequence[float], weights: Sequence[float], steps: Sequence[float]) -> list[float]:
    """The positions nearest to `wanted`, in weighted least squares, each at least its predecessor's step after it.

    Without the steps, which are taken off first, that is isotonic regression: neighbours that are out of order are
    pooled at their mean (Barlow and others, 1972).
    """
    shifts, shift = [], 0.0
    pools: list[list[float]] = []  # mean, weight, count
    for x, weight, step in zip(wanted, weights, steps, strict=True):
        shifts.append(shift)
        pools.append([x - shift, weight, 1])
        shift += step
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, more, count = pools.pop()
            into = pools[-1]
            into[0] = (into[0] * into[1] + mean * more) / (into[1] + more)
            into[1], into[2] = into[1] + more, into[2] + count
    means = [mean for mean, _, count in pools for _ in range(int(count))]
    return [mean + shift for mean, shift in zip(means, shifts, strict=True)]


def _place_y(ranks: Sequence[Sequence[Item]]) -> float:
    y = 0.0
    for rank in ranks:
        height = max(item.height for item in rank)
        for item in rank:
            item.y = y + (0.0 if item.bend else (height - item.height) / 2)
            item.height = height if item.bend else item.height
        y += height + GAP_Y
    return y - GAP_Y


def _route(chain: Sequence[_Segment], tops: Sequence[float], bottoms: Sequence[float]) -> list[Point]:
    """From item to item: straight down to the end of the rank, a curve through the gap, and straight on."""
    first = chain[0].upper
    points = [(first.x + chain[0].upper_offset, first.y + first.height)]
    for segment in chain:
        points.append((segment.upper.x + segment.upper_offset, bottoms[segment.upper.rank]))
        points.append((segment.lower.x + segment.lower_offset, tops[segment.lower.rank]))
    last = chain[-1].lower
    points.append((last.x + chain[-1].lower_offset, last.y))
    return points
