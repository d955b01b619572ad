"""Load weights from PyTorch and save them for PyTorch, without PyTorch: from safetensors files and arrays by name.

Both libraries compute the same functions, so only names differ: see `names`, `rename` for those of other checkpoints,
and docs/pytorch_weights.md.
"""

from transformer.interop.names import BARE, ModelNames, Pair, pytorch_names
from transformer.interop.rename import Fused, transposed
from transformer.interop.weights import load_pytorch, save_pytorch, to_pytorch

__all__ = ["BARE", "Fused", "ModelNames", "Pair", "load_pytorch", "pytorch_names", "save_pytorch", "to_pytorch",
           "transposed"]
