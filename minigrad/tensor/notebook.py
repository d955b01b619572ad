"""How a tensor looks in a notebook: what it is, its values abbreviated and, if it is a matrix, a small heat map.

From a GPU only what is shown is copied: the corners of the array, and means of blocks that are computed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from minigrad.device import device_of, on_device_of, to_numpy, xp
from minigrad.engine.node import Array, TensorBase

LINES = 24  # of values, at most
CELLS = 32  # rows and columns of a heat map, at most
LEVELS = 8  # shades of either colour

# Blue and orange are told apart by almost everybody; a faint cell shows the page, so that light and dark both do.
_STYLE = """\
.mg-tensor{display:flex;gap:1.2em;align-items:flex-start;color:inherit}
.mg-tensor pre{margin:0;background:none;color:inherit}
.mg-tensor .what{opacity:.75;margin-bottom:.3em}
.mg-tensor .more{fill:#e8590c}
.mg-tensor .less{fill:#1c7ed6}
.mg-tensor .bad,.mg-tensor .rim{fill:none;stroke:currentColor;stroke-width:.12}
.mg-tensor .rim{stroke-opacity:.5}
@media (prefers-color-scheme:dark){.mg-tensor .more{fill:#ff922b}.mg-tensor .less{fill:#4dabf7}}"""


def tensor_html(tensor: TensorBase) -> str:
    """The HTML of a tensor; it can always be made, and changes nothing."""
    data = tensor._data
    parts = [f'<div class="mg-tensor"><style>{_STYLE}</style>', "<div>",
             f'<div class="what">{escape(_what(tensor))}</div>', f"<pre>{escape(_values(data))}</pre></div>"]
    if data.ndim == 2 and data.size:
        parts.append(_heat_map(data))
    return "".join([*parts, "</div>"])


def _what(tensor: TensorBase) -> str:
    data = tensor._data
    origin = "" if tensor._node is None else f", op={tensor._node.primitive.name}"
    origin += ", requires_grad=True" if tensor._node is None and tensor._requires_grad else ""
    return f"{type(tensor).__name__}, shape={tuple(data.shape)}, dtype={data.dtype}, device={device_of(data)}{origin}"


def _values(data: Array) -> str:
    """The numbers at the corners. Of a long axis one more than is shown is kept, so that NumPy puts dots there."""
    edge = 3 if data.ndim <= 2 else 2 if data.ndim == 3 else 1
    with on_device_of(data):
        for axis, length in enumerate(data.shape):
            if length > 2 * edge + 1:
                before = (slice(None),) * axis
                ends = [data[(*before, slice(edge + 1))], data[(*before, slice(length - edge, None))]]
                data = xp(data).concatenate(ends, axis=axis)
    with np.printoptions(precision=4, threshold=0, edgeitems=edge, linewidth=100):
        lines = np.array2string(to_numpy(data), separator=", ").splitlines()
    return "\n".join(lines if len(lines) <= LINES else [*lines[:LINES], "…"])


def _block_means(data: Array) -> tuple[np.ndarray[Any, Any], tuple[int, int]]:
    """A matrix of at most CELLS rows and columns of means, on the host, and how many rows and columns each is of."""
    with on_device_of(data):
        data = data.astype("float64" if data.dtype.itemsize > 4 else "float32", copy=False)
        sizes = []
        for axis in (0, 1):
            size = -(-data.shape[axis] // CELLS)
            sizes.append(size)
            if size > 1:
                data = _means_along(data, axis, size)
    return to_numpy(data), (sizes[0], sizes[1])


def _means_along(data: Array, axis: int, size: int) -> Array:
    """The means of each `size` slices along an axis; the last may be of fewer."""
    whole = data.shape[axis] // size * size
    first, rest = (data[:whole], data[whole:]) if axis == 0 else (data[:, :whole], data[:, whole:])
    shape = (-1, size, data.shape[1]) if axis == 0 else (data.shape[0], -1, size)
    means = first.reshape(shape).mean(axis=1 if axis == 0 else 2)
    if rest.shape[axis]:
        means = xp(data).concatenate([means, rest.mean(axis=axis, keepdims=True)], axis=axis)
    return means


def _heat_map(data: Array) -> str:
    """An SVG with a square for each value: orange above 0, blue below, the same strength for the same distance."""
    with np.errstate(over="ignore", invalid="ignore"):
        means, (rows, columns) = _block_means(data)
    finite = np.isfinite(means)
    top = float(abs(means[finite]).max(initial=0.0))
    levels = np.zeros(means.shape, int)
    if top:
        levels[finite] = np.rint(means[finite] / top * LEVELS)
    height, width = means.shape
    side = max(6, min(18, 120 // max(height, width)))
    note = f"colours from {-top:.3g} (blue) to {top:.3g} (orange)"
    if not finite.all():
        note += "; hatched: NaN or infinite"
    merged = f'<div class="what">each cell: the mean of {rows}×{columns}</div>' if rows > 1 or columns > 1 else ""
    paths = "".join(_paths(levels, finite))
    return (f'<div><svg role="img" width="{width * side}" height="{height * side}" viewBox="0 0 {width} {height}">'
            f'<title>{escape(note)}</title>{paths}<rect class="rim" width="{width}" height="{height}"/></svg>'
            f"{merged}</div>")


def _paths(levels: np.ndarray[Any, Any], finite: np.ndarray[Any, Any]) -> Iterator[str]:
    """A path for each shade, of a unit square for each of its cells; two strokes across those that are not finite."""
    for level in np.unique(levels[finite & (levels != 0)]).tolist():
        squares = "".join(f"M{x},{y}h1v1h-1z" for y, x in np.argwhere(finite & (levels == level)).tolist())
        kind = "more" if level > 0 else "less"
        yield f'<path class="{kind}" fill-opacity="{abs(level) / LEVELS:.3g}" d="{squares}"/>'
    strokes = "".join(f"M{x},{y + 1}l1,-1M{x},{y + .5}l.5,-.5M{x + .5},{y + 1}l.5,-.5"
                      for y, x in np.argwhere(~finite).tolist())
    if strokes:
        yield f'<path class="bad" d="{strokes}"/>'
