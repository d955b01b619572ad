"""Load weights from PyTorch and save them for PyTorch, without PyTorch: from safetensors files and arrays by name.

Both libraries compute the same functions, so only names differ: `pytorch_names` has them, and docs/pytorch_weights.md.
"""

from transformer.interop.names import pytorch_names
from transformer.interop.weights import load_pytorch, save_pytorch, to_pytorch

__all__ = ["load_pytorch", "pytorch_names", "save_pytorch", "to_pytorch"]
