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
from minigrad.ops.diagonals import diag, diagonal, trace, tril, triu
from minigrad.ops.exponential import erf, exp, exp2, expm1, log, log1p, log2, log10, logaddexp, sigmoid
from minigrad.ops.hyperbolic import acosh, arccosh, arcsinh, arctanh, asinh, atanh, cosh, sinh, tanh
from minigrad.ops.indexing import argwhere, gather, getitem, index_select, masked_select, nonzero, put_into_zeros, take
from minigrad.ops.joining import chunk, concatenate, hstack, split, stack, unbind, vstack
from minigrad.ops.linalg import einsum, matmul
from minigrad.ops.norms import norm
from minigrad.ops.powers import hypot, power, rsqrt, sqrt
from minigrad.ops.products import dot, inner, kron, outer, tensordot
from minigrad.ops.reduction import all, any, argmax, argmin, logsumexp, max, mean, min, prod, std, sum, var
from minigrad.ops.repetition import meshgrid, repeat, repeat_interleave, tile
from minigrad.ops.rounding import ceil, floor, floor_divide, round, sign, trunc
from minigrad.ops.scan import cumprod, cumsum, linear_recurrence, logcumsumexp
from minigrad.ops.scattering import bincount, index_add, index_put, masked_fill, scatter, scatter_add
from minigrad.ops.selection import absolute, clip, maximum, minimum, nan_to_num, relu, where
from minigrad.ops.shape import (
    broadcast_to,
    expand_dims,
    flatten,
    flip,
    moveaxis,
    pad,
    ravel,
    reshape,
    roll,
    squeeze,
    swapaxes,
    to_device,
    transpose,
)
from minigrad.ops.sorting import argsort, median, sort, topk
from minigrad.ops.trigonometric import acos, arccos, arcsin, arctan, arctan2, asin, atan, atan2, cos, sin, tan

__all__ = [
    "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "all", "any", "arccos", "arccosh", "arcsin", "arcsinh",
    "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort", "argwhere", "asin", "asinh", "astype", "atan",
    "atan2", "atanh", "bincount", "broadcast_to", "ceil", "chunk", "clip", "concatenate", "cos", "cosh", "cumprod",
    "cumsum", "diag", "diagonal", "div", "dot", "einsum", "equal", "erf", "exp", "exp2", "expand_dims", "expm1",
    "flatten", "flip", "floor", "floor_divide", "gather", "getitem", "greater", "greater_equal", "hstack", "hypot",
    "index_add", "index_put", "index_select", "inner", "isfinite", "isinf", "isnan", "kron", "lerp", "less",
    "less_equal", "linear_recurrence", "log", "log1p", "log2", "log10", "logaddexp", "logcumsumexp", "logical_and",
    "logical_not", "logical_or", "logsumexp", "masked_fill", "masked_select", "matmul", "max", "maximum", "mean",
    "median", "meshgrid", "min", "minimum", "moveaxis", "mul", "nan_to_num", "neg", "nonzero", "norm", "not_equal",
    "outer", "pad", "power", "prod", "put_into_zeros", "ravel", "reciprocal", "relu", "remainder", "repeat",
    "repeat_interleave", "reshape", "roll", "round", "rsqrt", "scatter", "scatter_add", "sigmoid", "sign", "sin",
    "sinh", "sort", "split", "sqrt", "square", "squeeze", "stack", "std", "sub", "sum", "swapaxes", "take", "tan",
    "tanh", "tensordot", "tile", "to_device", "topk", "trace", "transpose", "tril", "triu", "trunc", "unbind", "var",
    "vstack", "where", "zeros_like",
]
