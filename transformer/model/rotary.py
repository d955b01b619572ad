"""Rotary positions (Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2).

Features are paired, and at position p the i-th of n pairs is turned by the angle ``p · base^(-i/n)``. Queries and keys
are turned, and a score then depends on how far the two tokens are apart: ⟨R_m q, R_k k⟩ = ⟨q, R_(k-m) k⟩.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.device import asarray_on, xp
from minigrad.engine.primitive import primitive

LAYOUTS = ("halves", "interleaved")


@primitive(floating=True, fresh=True)
def rotation(x, cos, sin, layout):
    """Each pair of features turned: (…, T, d), with the cosines and sines of its angles, (…, T, n) each, n ≤ d/2."""
    n = cos.shape[-1]
    first, second = slice(0, n), slice(n, 2 * n)
    if layout == "interleaved":
        first, second = slice(0, 2 * n, 2), slice(1, 2 * n, 2)
    out = xp(x).copy(x)  # beyond the n pairs as it is
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., first] * sin + x[..., second] * cos
    return out


# forward: y = R x with R orthogonal   so here: dx = Rᵀ dy, the rotation back
rotation.gradient(x=lambda g, cos, sin, layout: rotation(g, cos, -sin, layout))


@dataclass(frozen=True)
class RotaryPositions:
    """Turns each pair of features by the angle of its token's position, for an attention:
    ``GroupedQueryAttention(64, 4, rotary=RotaryPositions())``.

    Attributes:
        base: the wavelengths run from 2π to nearly ``2π · base``.
        layout: feature i is paired with i + n, "halves" (GPT-NeoX, Llama); or 2i with 2i + 1, "interleaved" (the paper,
            GPT-J).
        features: turn the first so many alone, 2n; None: all.

    Raises:
        ValueError: an unknown layout; a base that is not positive.
    """

    base: float = 10000.0
    layout: str = "halves"
    features: int | None = None

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise ValueError(f"RotaryPositions: layout must be one of {', '.join(LAYOUTS)}, got {self.layout!r}")
        if not 0 < self.base < float("inf"):
            raise ValueError(f"RotaryPositions: base must be positive, got {self.base}")

    def __call__(self, x: Any, position: int = 0) -> Any:
        """Turn the queries or keys of each head.

        Args:
            x: (…, T, d)
            position: that of the first of the T tokens.

        Returns:
            (…, T, d), in the dtype of x. Angles are computed in float64, so they are exact at long positions too.

        Raises:
            ValueError: fewer than two axes; fewer features than are to be turned, or an odd number of these.
        """
        features = x.shape[-1] if self.features is None else self.features
        if len(x.shape) < 2 or features % 2 or not 0 <= features <= x.shape[-1]:
            raise ValueError(f"RotaryPositions: x (…, T, d) with an even number of features to turn expected, got x of "
                             f"shape {tuple(x.shape)} and {features} features")
        count = features // 2
        places = np.arange(position, position + x.shape[-2])[:, None]
        angles = places * float(self.base) ** (-np.arange(count) / count)  # (T, n)
        dtype = np.promote_types(x.dtype, np.float32)  # of float16 too, which is rounded once
        cos, sin = (asarray_on(x.device, table, dtype) for table in (np.cos(angles), np.sin(angles)))
        return rotation(x, cos, sin, self.layout)
