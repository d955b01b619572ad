"""Rotary positions (Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2).

Features are paired, and at position p the i-th of n pairs is turned by the angle ``p · base^(-i/n)``. Queries and keys
are turned, and a score then depends on how far the two tokens are apart: ⟨R_m q, R_k k⟩ = ⟨q, R_(k-m) k⟩.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.device import asarray_on, device_of, xp
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import primitive

LAYOUTS = ("halves", "interleaved")


@primitive(floating=True, fresh=True)
def rotation(x, cos, sin, layout):
    """Each pair of features turned: (…, T, d), with the cosines and sines of its angles, (…, T, n) each, n ≤ d/2."""
    first, second = pairs(layout, cos.shape[-1])
    out = xp(x).array(x)  # beyond the n pairs as it is
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., first] * sin + x[..., second] * cos
    return out


# forward: y = R x with R orthogonal   so here: dx = Rᵀ dy, the rotation back
rotation.gradient(x=lambda g, cos, sin, layout: rotation(g, cos, -sin, layout))


def pairs(layout: str, count: int) -> tuple[slice, slice]:
    """Where the first and where the second features of the pairs stand."""
    if layout == "halves":
        return slice(0, count), slice(count, 2 * count)
    return slice(0, 2 * count, 2), slice(1, 2 * count, 2)


def rotate(x: Any, positions: Any = 0, base: float = 10000.0, layout: str = "halves",
           features: int | None = None) -> Any:
    """Turn each pair of features by the angle of its token's position.

    Args:
        x: queries or keys of each head, (…, T, d).
        positions: the position of the first of the T tokens, a whole number; or those of all, an array on the host that
            broadcasts to (…, T).
        base: the wavelengths run from 2π to nearly ``2π · base``.
        layout: feature i is paired with i + n, "halves" (GPT-NeoX, Llama); or 2i with 2i + 1, "interleaved" (the paper,
            GPT-J).
        features: turn the first so many alone, 2n; None: all d.

    Returns:
        (…, T, d), in the dtype of x. Angles are computed in float64, so they are exact at long positions too.

    Raises:
        ValueError: an odd number of features, or more than there are; an unknown layout; a base that is not positive;
            positions of another shape.
    """
    _check(base, layout, features)
    features = x.shape[-1] if features is None else features
    if len(x.shape) < 2 or features % 2 or features > x.shape[-1]:
        raise ValueError(f"rotate: x (…, T, d) with an even number of features to turn expected, got x of shape "
                         f"{tuple(x.shape)} and {features} features")
    angles = _angles(positions, tuple(x.shape), base, features // 2)
    raw = x._data if isinstance(x, TensorBase) else x
    dtype = np.float64 if raw.dtype == np.float64 else np.float32  # of float16 too, which is rounded once, at the end
    cos, sin = (asarray_on(device_of(raw), table.astype(dtype)) for table in (np.cos(angles), np.sin(angles)))
    return rotation(x, cos, sin, layout)


def _angles(positions: Any, shape: tuple[int, ...], base: float, count: int) -> np.ndarray[Any, Any]:
    """The angles (…, T, n) of n pairs, float64."""
    places = np.asarray(positions)
    if places.ndim == 0:
        places = places + np.arange(shape[-2])
    np.broadcast_to(places, shape[:-1])  # ValueError if they do not
    return places[..., None] * float(base) ** (-np.arange(count) / count)


def _check(base: float, layout: str, features: int | None) -> None:
    if layout not in LAYOUTS:
        raise ValueError(f"rotate: layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if not 0 < base < float("inf"):
        raise ValueError(f"rotate: base must be positive, got {base}")
    if features is not None and (features < 0 or features % 2):
        raise ValueError(f"rotate: features must be an even number, got {features}")


@dataclass(frozen=True)
class RotaryPositions:
    """`rotate` with its options, for an attention: ``GroupedQueryAttention(64, 4, rotary=RotaryPositions())``.

    Attributes:
        base, layout, features: those of `rotate`, where the errors are described too.
    """

    base: float = 10000.0
    layout: str = "halves"
    features: int | None = None

    def __post_init__(self) -> None:
        _check(self.base, self.layout, self.features)

    def __call__(self, x: Any, positions: Any = 0) -> Any:
        """Turn `x`, (…, T, d); `positions` are those of `rotate`."""
        return rotate(x, positions, self.base, self.layout, self.features)
