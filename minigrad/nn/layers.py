"""The layers that models are made of. None of them keeps a result of ``forward``."""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal

from minigrad import functional as F
from minigrad.arguments import number
from minigrad.functional.dropout import check_probability
from minigrad.nn import init
from minigrad.nn.module import Module
from minigrad.nn.parameter import new_parameter
from minigrad.tensor import Tensor


class Linear(Module):
    """``y = x Wᵀ + b``: (…, in_features) → (…, out_features).

    Args:
        in_features: length of the last axis of the input.
        out_features: length of the last axis of the output.
        bias: whether there is a b.

    Attributes:
        weight: W, of shape (out_features, in_features).
        bias: b, of shape (out_features,), or None.

    Both begin uniform on ±1/√in_features, PyTorch's default; see `minigrad.nn.init` for others.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = new_parameter(out_features, in_features)
        self.bias = new_parameter(out_features) if bias else None
        bound = 1 / sqrt(in_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to `x` of shape (…, in_features)."""
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """A table of vectors looked up by integer: ids of any shape (…) → (…, embedding_dim).

    Args:
        num_embeddings: rows of the table; ids run from 0 to num_embeddings − 1.
        embedding_dim: length of each vector.
        padding_idx: an id whose row begins at zero and is never learnt, or None. May count from the end.

    Attributes:
        weight: the table, of shape (num_embeddings, embedding_dim), begun with draws from N(0, 1).
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.weight = new_parameter(num_embeddings, embedding_dim)
        init.normal_(self.weight)
        if padding_idx is not None:
            number(padding_idx, "padding_idx", "Embedding", -num_embeddings, num_embeddings - 1)
            self.weight[padding_idx] = 0.0
            self.padding_idx = padding_idx % num_embeddings

    def forward(self, ids: Any) -> Tensor:
        """The vectors of `ids`, a tensor or array of integers of any shape."""
        return F.embedding(ids, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """Sizes, and the padding id if there is one."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class LayerNorm(Module):
    """Each vector along the last axis, shifted and scaled to mean 0 and variance 1, then ``·weight + bias``.

    Ba, Kiros and Hinton, "Layer normalization", 2016, equation 4.

    Args:
        normalized_shape: length of the last axis.
        eps: added to the variance.
        elementwise_affine: whether weight and bias are learnt; else there is neither.
        bias: whether a bias is learnt.

    Attributes:
        weight: of shape (normalized_shape,), ones at first, or None.
        bias: of shape (normalized_shape,), zeros at first, or None.
    """

    def __init__(self, normalized_shape: int, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True) -> None:
        super().__init__()
        self.normalized_shape, self.eps = normalized_shape, number(eps, "eps", "LayerNorm")
        self.weight = init.ones_(new_parameter(normalized_shape)) if elementwise_affine else None
        self.bias = init.zeros_(new_parameter(normalized_shape)) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise `x` of shape (…, normalized_shape)."""
        return F.layer_norm(x, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Size, eps, and what is learnt."""
        learnt = f"bias={self.bias is not None}" if self.weight is not None else "elementwise_affine=False"
        return f"{self.normalized_shape}, eps={self.eps}, {learnt}"


class Dropout(Module):
    """In training, set each element to 0 with probability `p` and divide the rest by 1 − p; else nothing.

    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014. The mask of
    each call is a function of (seed, step, call), see `minigrad.random`; the module keeps nothing.
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = check_probability(p, "Dropout")

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements of `x`, of any shape, if ``training``."""
        return F.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class ReLU(Module):
    """``max(x, 0)``."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.relu(x)


class GELU(Module):
    """``x·Φ(x)``, Φ the distribution function of the standard normal.

    Hendrycks and Gimpel, "Gaussian error linear units", 2016.

    Args:
        approximate: ``"none"`` for the exact Φ, ``"tanh"`` for the paper's approximation.
    """

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        """The option."""
        return f"approximate={self.approximate!r}"
