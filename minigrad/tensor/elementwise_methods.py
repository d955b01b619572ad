"""The methods of a Tensor that are elementwise ops under NumPy's or PyTorch's names; each calls the op of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad import ops
from minigrad.engine.node import TensorBase

if TYPE_CHECKING:
    from minigrad.tensor import Tensor


class ElementwiseMethods(TensorBase):
    """``x.exp()``, ``x.round(2)``, ``x.atan2(y)`` and the like; a Tensor inherits them from here."""

    __slots__ = ()

    def exp(self) -> Tensor:
        return ops.exp(self)

    def exp2(self) -> Tensor:
        return ops.exp2(self)

    def expm1(self) -> Tensor:
        return ops.expm1(self)

    def log(self) -> Tensor:
        return ops.log(self)

    def log2(self) -> Tensor:
        return ops.log2(self)

    def log10(self) -> Tensor:
        return ops.log10(self)

    def log1p(self) -> Tensor:
        return ops.log1p(self)

    def sqrt(self) -> Tensor:
        return ops.sqrt(self)

    def rsqrt(self) -> Tensor:
        return ops.rsqrt(self)

    def square(self) -> Tensor:
        return ops.square(self)

    def reciprocal(self) -> Tensor:
        return ops.reciprocal(self)

    def sin(self) -> Tensor:
        return ops.sin(self)

    def cos(self) -> Tensor:
        return ops.cos(self)

    def tan(self) -> Tensor:
        return ops.tan(self)

    def asin(self) -> Tensor:
        return ops.asin(self)

    def acos(self) -> Tensor:
        return ops.acos(self)

    def atan(self) -> Tensor:
        return ops.atan(self)

    def sinh(self) -> Tensor:
        return ops.sinh(self)

    def cosh(self) -> Tensor:
        return ops.cosh(self)

    def tanh(self) -> Tensor:
        return ops.tanh(self)

    def asinh(self) -> Tensor:
        return ops.asinh(self)

    def acosh(self) -> Tensor:
        return ops.acosh(self)

    def atanh(self) -> Tensor:
        return ops.atanh(self)

    def sigmoid(self) -> Tensor:
        return ops.sigmoid(self)

    def erf(self) -> Tensor:
        return ops.erf(self)

    def relu(self) -> Tensor:
        return ops.relu(self)

    def abs(self) -> Tensor:
        return ops.absolute(self)

    arcsin, arccos, arctan = asin, acos, atan
    arcsinh, arccosh, arctanh = asinh, acosh, atanh

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        return ops.clip(self, min, max)

    def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
        return ops.nan_to_num(self, nan, posinf, neginf)

    def floor(self) -> Tensor:
        return ops.floor(self)

    def ceil(self) -> Tensor:
        return ops.ceil(self)

    def trunc(self) -> Tensor:
        return ops.trunc(self)

    def sign(self) -> Tensor:
        return ops.sign(self)

    def isnan(self) -> Tensor:
        return ops.isnan(self)

    def isinf(self) -> Tensor:
        return ops.isinf(self)

    def isfinite(self) -> Tensor:
        return ops.isfinite(self)

    def round(self, decimals: int = 0) -> Tensor:
        return ops.round(self, decimals)

    def maximum(self, other: Any) -> Tensor:
        return ops.maximum(self, other)

    def minimum(self, other: Any) -> Tensor:
        return ops.minimum(self, other)

    def atan2(self, other: Any) -> Tensor:
        return ops.atan2(self, other)

    arctan2 = atan2

    def hypot(self, other: Any) -> Tensor:
        return ops.hypot(self, other)

    def logaddexp(self, other: Any) -> Tensor:
        return ops.logaddexp(self, other)

    def remainder(self, other: Any) -> Tensor:
        return ops.remainder(self, other)

    def floor_divide(self, other: Any) -> Tensor:
        return ops.floor_divide(self, other)

    def lerp(self, end: Any, weight: Any) -> Tensor:
        return ops.lerp(self, end, weight)

    def addcmul(self, tensor1: Any, tensor2: Any, value: float = 1) -> Tensor:
        return ops.addcmul(self, tensor1, tensor2, value)

    def addcdiv(self, tensor1: Any, tensor2: Any, value: float = 1) -> Tensor:
        return ops.addcdiv(self, tensor1, tensor2, value)
