"""The operations: plain functions on arrays or tensors, each with its gradient rule beside it.

Given arrays they return arrays, given tensors they return tensors (and record, when a gradient is needed). The modules
here have what a Transformer uses; the folder ``more`` has the rest, by kind.
"""

from minigrad.ops.arithmetic import add, div, mul, neg, square, sub
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
from minigrad.ops.exponential import erf, erfc, exp, log, power, sigmoid, sqrt
from minigrad.ops.indexing import gather, getitem, put_into_zeros, take
from minigrad.ops.linalg import matmul
from minigrad.ops.more.arithmetic import ceil, floor, floor_divide, remainder, round
from minigrad.ops.more.bitwise import bitwise_and, bitwise_not, bitwise_or
from minigrad.ops.more.diagonals import diag, diagonal, trace, tril, triu
from minigrad.ops.more.einsum import einsum
from minigrad.ops.more.exponential import expm1, log1p, log2, log10, logaddexp
from minigrad.ops.more.padding import pad
from minigrad.ops.more.places import index_put, masked_fill
from minigrad.ops.more.products import dot, outer
from minigrad.ops.more.reduction import norm, prod, std, var
from minigrad.ops.more.scan import cumprod, cumsum
from minigrad.ops.more.shape import flip, moveaxis, repeat, roll, tile
from minigrad.ops.more.sorting import argsort, sort, topk
from minigrad.ops.more.stacking import hstack, vstack
from minigrad.ops.more.trigonometric import cos, cosh, sin, sinh, tan, tanh
from minigrad.ops.reduction import all, any, argmax, argmin, logsumexp, max, mean, min, sum
from minigrad.ops.selection import absolute, clip, maximum, minimum, relu, sign, where
from minigrad.ops.shape import (
    broadcast_to,
    chunk,
    concatenate,
    expand_dims,
    flatten,
    ravel,
    reshape,
    split,
    squeeze,
    stack,
    swapaxes,
    to_device,
    transpose,
    unbind,
)

__all__ = [
    "absolute", "add", "all", "any", "argmax", "argmin", "argsort", "astype", "bitwise_and", "bitwise_not",
    "bitwise_or", "broadcast_to", "ceil", "chunk", "clip", "concatenate", "cos", "cosh", "cumprod", "cumsum", "diag",
    "diagonal", "div", "dot", "einsum", "equal", "erf", "erfc", "exp", "expand_dims", "expm1", "flatten", "flip",
    "floor", "floor_divide", "gather", "getitem", "greater", "greater_equal", "hstack", "index_put", "isfinite",
    "isinf", "isnan", "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logsumexp", "masked_fill", "matmul", "max", "maximum", "mean", "min", "minimum", "moveaxis", "mul",
    "neg", "norm", "not_equal", "outer", "pad", "power", "prod", "put_into_zeros", "ravel", "relu", "remainder",
    "repeat", "reshape", "roll", "round", "sigmoid", "sign", "sin", "sinh", "sort", "split", "sqrt", "square",
    "squeeze", "stack", "std", "sub", "sum", "swapaxes", "take", "tan", "tanh", "tile", "to_device", "topk", "trace",
    "transpose", "tril", "triu", "unbind", "var", "vstack", "where", "zeros_like",
]
