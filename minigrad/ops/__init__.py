"""The operations: plain functions on arrays or tensors, each with its gradient rule beside it.

Given arrays they return arrays, given tensors they return tensors (and record, when a gradient is needed).
"""

from minigrad.ops.arithmetic import add, addcdiv, addcmul, div, lerp, mul, neg, reciprocal, remainder, square, sub
from minigrad.ops.comparison import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from minigrad.ops.conversion import astype, zeros_like
from minigrad.ops.exponential import erf, exp, exp2, expm1, log, log1p, log2, log10, logaddexp, sigmoid
from minigrad.ops.hyperbolic import acosh, arccosh, arcsinh, arctanh, asinh, atanh, cosh, sinh, tanh
from minigrad.ops.indexing import gather, getitem, masked_fill, put_into_zeros, scatter_add, take
from minigrad.ops.linalg import einsum, matmul
from minigrad.ops.powers import hypot, power, rsqrt, sqrt
from minigrad.ops.reduction import all, any, argmax, argmin, cumsum, logsumexp, max, mean, min, sum, var
from minigrad.ops.rounding import ceil, floor, floor_divide, round, sign, trunc
from minigrad.ops.selection import absolute, clip, maximum, minimum, nan_to_num, relu, where
from minigrad.ops.shape import (
    broadcast_to,
    concatenate,
    expand_dims,
    flip,
    pad,
    reshape,
    split,
    squeeze,
    stack,
    swapaxes,
    to_device,
    transpose,
    tril,
    triu,
)
from minigrad.ops.trigonometric import acos, arccos, arcsin, arctan, arctan2, asin, atan, atan2, cos, sin, tan

__all__ = [
    "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "all", "any", "arccos", "arccosh", "arcsin", "arcsinh",
    "arctan", "arctan2", "arctanh", "argmax", "argmin", "asin", "asinh", "astype", "atan", "atan2", "atanh",
    "broadcast_to", "ceil", "clip", "concatenate", "cos", "cosh", "cumsum", "div", "einsum", "equal", "erf", "exp",
    "exp2", "expand_dims", "expm1", "flip", "floor", "floor_divide", "gather", "getitem", "greater", "greater_equal",
    "hypot", "isfinite", "isinf", "isnan", "lerp", "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logsumexp", "masked_fill", "matmul", "max", "maximum", "mean", "min",
    "minimum", "mul", "nan_to_num", "neg", "not_equal", "pad", "power", "put_into_zeros", "reciprocal", "relu",
    "remainder", "reshape", "round", "rsqrt", "scatter_add", "sigmoid", "sign", "sin", "sinh", "split", "sqrt",
    "square", "squeeze", "stack", "sub", "sum", "swapaxes", "take", "tan", "tanh", "to_device", "transpose", "tril",
    "triu", "trunc", "var", "where", "zeros_like",
]
