"""Weights from PyTorch and to PyTorch, without PyTorch: it works on safetensors files and on arrays by name.

Both sides compute the same functions, so this is a matter of names alone: see `names`, and docs/pytorch_weights.md.
"""

from transformer.interop.names import BARE, ModelNames, Pair, pytorch_names
from transformer.interop.weights import load_pytorch, save_pytorch, to_pytorch

__all__ = ["BARE", "ModelNames", "Pair", "load_pytorch", "pytorch_names", "save_pytorch", "to_pytorch"]
