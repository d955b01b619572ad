"""SiLU, as a composition of operations; relu, sigmoid and tanh are operations themselves."""

from __future__ import annotations

from typing import Any

from minigrad.arguments import public
from minigrad.functional.compositions import tap
from minigrad.ops import sigmoid


@public
def silu(input: Any) -> Any:
    """``x σ(x)``, also called swish (Elfwing, Uchibe and Doya 2017, arXiv:1702.03118)."""
    return input * tap("gate", sigmoid(input))
