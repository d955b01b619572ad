"""Plots: the curves of a training run, and attention weights.

The figures need no window: ``figure.savefig("picture.png")`` works without a display, and a notebook shows them.
"""

from transformer.explore.plots.attention import plot_attention
from transformer.explore.plots.history import plot_history

__all__ = ["plot_attention", "plot_history"]
