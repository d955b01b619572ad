"""Reducing what is sent to the same place: the sum, product, mean, largest or smallest of it.

Every member of a place, the input's own element too, has the number of the place as its owner. Sums add at owners; the
others sort the members by owner, so that those of one place stand side by side, and combine neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.arguments import public
from minigrad.device import is_host, on_device_of, xp
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import equal, isnan
from minigrad.ops.indexing import along, put_into_zeros, raw, take
from minigrad.ops.more.places import index_and_source
from minigrad.ops.selection import maximum, minimum, where
from minigrad.ops.shape import concatenate, reshape

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@public
def scatter_reduce(input: Any, axis: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
    """The input with each place reduced with what `src` sends there, as in PyTorch.

    ``src[i][j]`` is sent to ``[index[i][j]][j]`` for axis 0, and so on. A place that nothing is sent to keeps its
    element.

    Args:
        input, axis, index, src: as in `scatter_add`.
        reduce: ``"sum"``, ``"prod"`` (right beside zeros, to every order), ``"mean"`` (float32 of integers), or
            ``"amax"`` and ``"amin"``, where elements that tie share the gradient equally.
        include_self: whether the input's own element takes part where something is sent.

    Raises:
        ValueError: another `reduce`; and as `scatter_add`.
    """
    if reduce not in REDUCTIONS:
        raise ValueError(f"scatter_reduce: reduce must be one of {', '.join(map(repr, REDUCTIONS))}, got {reduce!r}")
    index, src = index_and_source(input, axis, index, src, "scatter_reduce")
    shape = tuple(input.shape)
    count = math.prod(shape)
    members = concatenate([reshape(input, (-1,)), reshape(src, (-1,))])
    owners = _owners(raw(index), axis, shape, include_self)
    if reduce in ("sum", "mean"):
        out = put_into_zeros(members, owners, (count + 1,))[:count]
        if reduce == "mean":
            with on_device_of(owners):
                out = out / xp(owners).bincount(owners, minlength=count + 1)[:count].astype(
                    out.dtype if out.dtype.kind == "f" else np.float32)
    elif reduce == "prod":
        out = _last_of_each(members, owners, count, _product)
    else:
        out = _extreme(members, owners, count, reduce == "amax")
    return reshape(out, shape)


def _owners(index: Any, axis: int, shape: tuple[int, ...], include_self: bool) -> Any:
    """The flat places of the input's elements, then of those that are sent; one more for an element left out."""
    with on_device_of(index):
        namespace = xp(index)
        count = math.prod(shape)
        own = namespace.arange(count)
        sent = own.reshape(shape)[along(index, axis)].reshape(-1)
        if not include_self:
            left_out = namespace.zeros(count, bool)
            left_out[sent] = True
            own = namespace.where(left_out, count, own)
        return namespace.concatenate([own, sent])


def _last_of_each(members: Any, owners: Any, count: int, combine: Callable[[Any, Any, Any], Any]) -> Any:
    """The members of each of `count` owners combined. Members and owners are sorted, then scanned in doubling steps.

    ``combine(x, y, joined)`` gives x where it has another owner than y, whatever y is: NaN, too.
    """
    with on_device_of(owners):
        namespace = xp(owners)
        order = namespace.argsort(owners, kind="stable")
        owners = owners[order]
        ends = namespace.searchsorted(owners, namespace.arange(count), side="right") - 1
    found, reach = members[order], 1
    while reach < len(owners):  # each place holds the members of its owner among the last `reach`, then twice as many
        with on_device_of(owners):
            joined = owners[reach:] == owners[:-reach]
        if is_host(joined) and not joined.any():
            break
        found = concatenate([found[:reach], combine(found[reach:], found[:-reach], joined)])
        reach *= 2
    return found[ends]


def _product(x: Any, y: Any, joined: Any) -> Any:
    return x * where(joined, y, y.dtype.type(1))


@primitive(fresh=True)
def _extreme(members, owners, count, largest):
    better = maximum if largest else minimum
    return _last_of_each(members, owners, count, lambda x, y, joined: where(joined, better(x, y), x))


def extreme_gradient(g, members, out, owners, count):
    # forward: the extreme of each owner      so here: to the members that attain it, in equal shares
    with on_device_of(owners):
        own = xp(owners).minimum(owners, count - 1)  # the element left out has no owner
        kept = owners < count
    attains = (equal(members, take(out, own)) | isnan(members)) & kept
    ties = put_into_zeros(attains.astype(g.dtype), own, (count,))
    return where(attains, take(g / ties, own), 0.0)


_extreme.gradient(members=extreme_gradient)
