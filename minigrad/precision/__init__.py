"""Mixed precision: float16 arithmetic with a float32 master copy, loss scaling, TF32."""

from minigrad.precision import half, half_functional
from minigrad.precision.autocast import autocast
from minigrad.precision.gpu import tf32

__all__ = ["autocast", "tf32"]


def install() -> None:
    """Register the bodies for float16."""
    half.install()
    half_functional.install()
