"""The operations: plain functions on arrays or tensors, each with its gradient rule beside it.

Given arrays they return arrays, given tensors they return tensors (and record, when a gradient is needed).
"""

from minigrad.ops.arithmetic import add, div, mul, neg, sub
from minigrad.ops.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from minigrad.ops.conversion import astype, zeros_like
from minigrad.ops.exponential import erf, exp, log, sigmoid
from minigrad.ops.hyperbolic import tanh
from minigrad.ops.indexing import gather, getitem, masked_fill, put_into_zeros, scatter_add, take
from minigrad.ops.linalg import einsum, matmul
from minigrad.ops.powers import power, sqrt
from minigrad.ops.reduction import all, any, argmax, argmin, cumsum, logsumexp, max, mean, min, sum, var
from minigrad.ops.rounding import sign
from minigrad.ops.selection import absolute, clip, maximum, minimum, relu, where
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

__all__ = [
    "absolute", "add", "all", "any", "argmax", "argmin", "astype", "broadcast_to", "clip", "concatenate", "cumsum",
    "div", "einsum", "equal", "erf", "exp", "expand_dims", "flip", "gather", "getitem", "greater", "greater_equal",
    "less", "less_equal", "log", "logical_and", "logical_not", "logical_or", "logsumexp", "masked_fill", "matmul",
    "max", "maximum", "mean", "min", "minimum", "mul", "neg", "not_equal", "pad", "power", "put_into_zeros", "relu",
    "reshape", "scatter_add", "sigmoid", "sign", "split", "sqrt", "squeeze", "stack", "sub", "sum", "swapaxes",
    "take", "tanh", "to_device", "transpose", "tril", "triu", "var", "where", "zeros_like",
]
