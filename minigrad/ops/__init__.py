"""The operations: plain functions on arrays or tensors, each with its gradient rule beside it.

Given arrays they return arrays, given tensors they return tensors (and record, when a gradient is needed). The modules
here have what a Transformer uses; the folder ``more`` has the rest, by kind.
"""

from minigrad.ops.arithmetic import add, div, mul, neg, reciprocal, square, sub
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
from minigrad.ops.exponential import erf, exp, log, power, sigmoid, sqrt
from minigrad.ops.indexing import gather, getitem, put_into_zeros, take
from minigrad.ops.linalg import matmul
from minigrad.ops.more.arithmetic import (
    addcdiv,
    addcmul,
    ceil,
    copysign,
    floor,
    floor_divide,
    fmod,
    lerp,
    remainder,
    round,
    trunc,
)
from minigrad.ops.more.bitwise import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    left_shift,
    logical_xor,
    right_shift,
)
from minigrad.ops.more.choosing import select
from minigrad.ops.more.closeness import allclose, isclose
from minigrad.ops.more.diagonals import diag, diagonal, trace, tril, triu
from minigrad.ops.more.differences import diff, gradient
from minigrad.ops.more.einsum import einsum
from minigrad.ops.more.exponential import exp2, expm1, hypot, log1p, log2, log10, logaddexp, logaddexp2, rsqrt
from minigrad.ops.more.padding import pad
from minigrad.ops.more.places import (
    argwhere,
    bincount,
    index_add,
    index_put,
    index_select,
    masked_fill,
    masked_select,
    nonzero,
    scatter,
    scatter_add,
)
from minigrad.ops.more.products import cross, dot, inner, kron, outer, tensordot
from minigrad.ops.more.reduction import norm, prod, std, var
from minigrad.ops.more.running import cummax, cummin
from minigrad.ops.more.scan import cumprod, cumsum, linear_recurrence, logcumsumexp
from minigrad.ops.more.scatter_reduce import scatter_reduce
from minigrad.ops.more.shape import (
    flip,
    fliplr,
    flipud,
    meshgrid,
    moveaxis,
    repeat,
    repeat_interleave,
    roll,
    rot90,
    tile,
    unflatten,
)
from minigrad.ops.more.sinc import sinc
from minigrad.ops.more.sorting import argsort, median, sort, topk
from minigrad.ops.more.stacking import atleast_1d, atleast_2d, atleast_3d, column_stack, dstack, hstack, vstack
from minigrad.ops.more.trigonometric import (
    acos,
    acosh,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)
from minigrad.ops.more.windows import unfold
from minigrad.ops.reduction import all, any, argmax, argmin, logsumexp, max, mean, min, sum
from minigrad.ops.selection import absolute, clip, maximum, minimum, nan_to_num, relu, sign, where
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
    "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "all", "allclose", "any", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort", "argwhere", "asin", "asinh", "astype",
    "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "bincount", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "broadcast_to", "ceil", "chunk", "clip", "column_stack", "concatenate", "copysign",
    "cos", "cosh", "cross", "cummax", "cummin", "cumprod", "cumsum", "diag", "diagonal", "diff", "div", "dot", "dstack",
    "einsum", "equal", "erf", "exp", "exp2", "expand_dims", "expm1", "flatten", "flip", "fliplr", "flipud", "floor",
    "floor_divide", "fmod", "gather", "getitem", "gradient", "greater", "greater_equal", "hstack", "hypot", "index_add",
    "index_put", "index_select", "inner", "isclose", "isfinite", "isinf", "isnan", "kron", "left_shift", "lerp", "less",
    "less_equal", "linear_recurrence", "log", "log1p", "log2", "log10", "logaddexp", "logaddexp2", "logcumsumexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "masked_fill", "masked_select", "matmul",
    "max", "maximum", "mean", "median", "meshgrid", "min", "minimum", "moveaxis", "mul", "nan_to_num", "neg", "nonzero",
    "norm", "not_equal", "outer", "pad", "power", "prod", "put_into_zeros", "ravel", "reciprocal", "relu", "remainder",
    "repeat", "repeat_interleave", "reshape", "right_shift", "roll", "rot90", "round", "rsqrt", "scatter",
    "scatter_add", "scatter_reduce", "select", "sigmoid", "sign", "sin", "sinc", "sinh", "sort", "split", "sqrt",
    "square", "squeeze", "stack", "std", "sub", "sum", "swapaxes", "take", "tan", "tanh", "tensordot", "tile",
    "to_device", "topk", "trace", "transpose", "tril", "triu", "trunc", "unbind", "unflatten", "unfold", "var",
    "vstack", "where", "zeros_like",
]
