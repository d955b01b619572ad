"""Mixed precision: float16 arithmetic with a float32 master copy, loss scaling."""

from minigrad.precision import half, half_functional
from minigrad.precision.autocast import autocast

__all__ = ["autocast"]


def install() -> None:
    """Register the bodies for float16."""
    half.install()
    half_functional.install()
