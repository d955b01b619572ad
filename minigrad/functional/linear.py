"""The affine map ``y = x Wᵀ + b``."""

from __future__ import annotations

from typing import Any

from minigrad.device.sums import column_sums
from minigrad.engine.primitive import primitive
from minigrad.ops.shape import rows


def check_shapes(input: Any, weight: Any, bias: Any) -> None:
    """ValueError unless the three fit together."""
    if len(weight.shape) != 2 or input.shape[-1:] != weight.shape[1:]:
        raise ValueError(f"linear: needs input.shape[-1] == weight.shape[1], got {tuple(input.shape)} and "
                         f"{tuple(weight.shape)}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"linear: needs bias.shape == (weight.shape[0],), got {tuple(bias.shape)} and "
                         f"{tuple(weight.shape)}")


@primitive(composite=True, precision="float16", fresh=True)
def linear(input, weight, bias=None):
    """``input @ weight.T + bias``.

    Args:
        input: (…, in_features)
        weight: (out_features, in_features)
        bias: (out_features,) or None

    Returns:
        (…, out_features)
    """
    check_shapes(input, weight, bias)
    out = rows(input) @ weight.mT  # (N, D) @ (D, E) -> (N, E), N rows in all: quicker than a product for each matrix
    if bias is not None:
        out += bias
    return out if input.ndim == 2 else out.reshape((*input.shape[:-1], weight.shape[0]))


# forward: Y = X Wᵀ + b.  With G = dY:  dX = G W,  dW = Gᵀ X,  db = Σ_rows G.
linear.gradient(input=lambda g, weight: (rows(g) @ weight).reshape((*g.shape[:-1], weight.shape[1])),
                weight=lambda g, input: rows(g).mT @ rows(input),  # (E, N) @ (N, D) -> (E, D)
                bias=lambda g: column_sums(rows(g)))
