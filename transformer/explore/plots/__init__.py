"""Plots: the curves of a training run, attention weights, and the gradient norm of each layer.

The figures need no window: ``figure.savefig("picture.png")`` works without a display, and a notebook shows them.
"""

from transformer.explore.plots.attention import cross_attention, plot_attention
from transformer.explore.plots.gradient_flow import gradient_norms, plot_gradient_flow
from transformer.explore.plots.history import plot_history

__all__ = ["cross_attention", "gradient_norms", "plot_attention", "plot_gradient_flow", "plot_history"]
