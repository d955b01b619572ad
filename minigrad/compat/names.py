"""What names from PyTorch and NumPy are called here, for the error that says so.

``minigrad.cat`` is an AttributeError that names ``minigrad.concatenate``. This module is imported when a name turns
out to be missing, and not before. docs/coming_from_pytorch.md tells the same at length.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec

# What `minigrad.NAME` or `tensor.NAME` would be elsewhere, and what says the same here: a method (".to(…)"), a name of
# ours, or plain Python and NumPy.
ELSEWHERE = {
    # making tensors
    "array": "minigrad.Tensor(data)",
    "as_tensor": "minigrad.from_numpy(array), which shares memory, or minigrad.Tensor(data), which copies",
    "asarray": "minigrad.from_numpy(array), which shares memory, or minigrad.Tensor(data), which copies",
    "from_array": "minigrad.from_numpy(array)",
    "FloatTensor": "minigrad.Tensor(data, dtype=numpy.float32)",
    "LongTensor": "minigrad.Tensor(data, dtype=numpy.int64)",
    "empty": "minigrad.zeros(shape)",
    "empty_like": "minigrad.zeros_like(x)",
    "new_zeros": "minigrad.zeros(shape, dtype, device)",
    "new_ones": "minigrad.ones(shape, dtype, device)",
    "new_tensor": "minigrad.Tensor(data, dtype, device)",
    "rand": "minigrad.Tensor(minigrad.random.generator().random(shape))",
    "logspace": "minigrad.Tensor(numpy.logspace(start, stop, num))",
    "randn": "minigrad.Tensor(minigrad.random.generator().normal(size=shape))",
    "randint": "minigrad.Tensor(minigrad.random.generator().integers(low, high, shape))",
    "randperm": "minigrad.Tensor(minigrad.random.generator().permutation(n))",
    # dtypes and devices
    "float16": "numpy.float16",
    "float32": "numpy.float32",
    "float64": "numpy.float64",
    "int32": "numpy.int32",
    "int64": "numpy.int64",
    "bool": "numpy.bool_",
    "half": ".astype(numpy.float16)",
    "float": ".astype(numpy.float32)",
    "double": ".astype(numpy.float64)",
    "long": ".astype(numpy.int64)",
    "int": ".astype(numpy.int32)",
    "type": ".astype(dtype)",
    "cuda": '.to("cuda")',
    "cpu": '.to("cpu")',
    "is_cuda": '.device != "cpu"',
    "get_device": ".device",
    # shapes
    "cat": "minigrad.concatenate(tensors, axis)",
    "concat": "minigrad.concatenate(tensors, axis)",
    "view": ".reshape(shape)",
    "view_as": ".reshape(other.shape)",
    "reshape_as": ".reshape(other.shape)",
    "expand_as": ".expand(other.shape)",
    "movedim": ".moveaxis(source, destination)",
    "t": ".T",
    "mH": ".mT",
    "dim": ".ndim",
    "numel": ".size",
    "nelement": ".size",
    "contiguous": ".clone(), though no operation here asks for it",
    "sliding_window_view": "minigrad.unfold(x, axis, size, step)",
    "rollaxis": ".moveaxis(source, destination)",
    "hsplit": ".split(sizes, 1)",
    "vsplit": ".split(sizes, 0)",
    "array_split": ".split(sizes, axis)",
    "row_stack": "minigrad.vstack(tensors)",
    "count_nonzero": "(x != 0).sum(axis)",
    "narrow": "x[start:start + length]",
    "take_along_dim": ".gather(axis, index)",
    "take_along_axis": ".gather(axis, index)",
    # arithmetic
    "abs": "minigrad.absolute(x)",
    "fabs": "minigrad.absolute(x)",
    "pow": "minigrad.power(x, y), or x ** y",
    "add": "x + y",
    "sub": "x - y",
    "subtract": "x - y",
    "mul": "x * y",
    "multiply": "x * y",
    "div": "x / y",
    "divide": "x / y",
    "true_divide": "x / y",
    "neg": "-x",
    "negative": "-x",
    "eq": "x == y",
    "ne": "x != y",
    "lt": "x < y",
    "le": "x <= y",
    "gt": "x > y",
    "ge": "x >= y",
    "logical_and": "x & y, of booleans; minigrad.ops.logical_and(x, y), of numbers",
    "logical_or": "x | y, of booleans; minigrad.ops.logical_or(x, y), of numbers",
    "logical_not": "~x, of booleans; minigrad.ops.logical_not(x), of numbers",
    "logical_xor": "x ^ y, of booleans; minigrad.ops.logical_xor(x, y), of numbers",
    "fmax": "minigrad.maximum(x, y), which keeps NaN",
    "fmin": "minigrad.minimum(x, y), which keeps NaN",
    "fix": "minigrad.trunc(x)",
    "rint": "minigrad.round(x)",
    "deg2rad": "x * (numpy.pi / 180)",
    "rad2deg": "x * (180 / numpy.pi)",
    "array_equal": "minigrad.allclose(x, y, rtol=0, atol=0)",
    "bitwise_and": "x & y",
    "bitwise_or": "x | y",
    "bitwise_not": "~x",
    "bitwise_xor": "x ^ y",
    "bitwise_left_shift": "x << y",
    "bitwise_right_shift": "x >> y",
    "left_shift": "x << y",
    "right_shift": "x >> y",
    "mm": "x @ y",
    "bmm": "x @ y",
    "mv": "x @ y",
    "addmm": "x @ y + z",
    "clamp": ".clip(min, max)",
    "clamp_min": ".clip(min)",
    "amax": ".max(axis)",
    "amin": ".min(axis)",
    "quantile": ".median(axis), for the quantile 0.5",
    "values": "the tensor itself: x.max(axis) and x.sort(axis) return the values alone",
    "indices": "x.argmax(axis) or x.argsort(axis), beside x.max(axis) and x.sort(axis), which return values alone",
    # gradients and transforms
    "Function": "minigrad.primitive, which makes an operation of a function and its gradient rules",
    "grad_fn": ".is_leaf, or the repr, which names the operation",
    "inference_mode": "minigrad.no_grad()",
    "set_grad_enabled": "minigrad.enable_grad() and minigrad.no_grad()",
    "detach_": ".detach()",
    "jacrev": "minigrad.func.jacobian(function)",
    "jacfwd": "minigrad.func.jacobian(function)",
    "grad_and_value": "minigrad.func.value_and_grad(function), which returns the value first",
    "profiler": "minigrad.profile(), a context manager; minigrad.inspect.span(name) for record_function",
    "record_function": "minigrad.inspect.span(name)",
    # optimizers, schedules and files
    "amp": "minigrad.autocast(), a context manager, and minigrad.optim.GradScaler()",
    "backends": 'minigrad.tf32("cuda"), a context manager, for torch.backends.cuda.matmul.allow_tf32',
    "set_float32_matmul_precision": 'minigrad.tf32("cuda"), a context manager',
    "GradScaler": "minigrad.optim.GradScaler()",
    "lr_scheduler": "minigrad.optim itself, which has minigrad.optim.LambdaLR and other schedules",
    "CosineAnnealingLR": "minigrad.optim.CosineLR(optimizer, warmup_steps, total_steps), stepped after every update",
    "StepLR": "minigrad.optim.LambdaLR(optimizer, lambda step: gamma ** (step // step_size))",
    "ExponentialLR": "minigrad.optim.LambdaLR(optimizer, lambda step: gamma ** step)",
    "save": "minigrad.checkpoint.save_tensors(path, module.state_dict())",
    "load": "module.load_state_dict(minigrad.checkpoint.load_tensors(path)[0])",
    # changes in place
    "zero_": "x[...] = 0",
    "fill_": "x[...] = value",
}

# Names that mean one thing in one namespace and something else, or nothing, in others.
IN: dict[str, dict[str, str]] = {
    "minigrad": {
        "cuda": 'device="cuda", and minigrad.device.cuda_status().devices for torch.cuda.is_available()',
        "utils": "minigrad.func.checkpoint(function, *args) for torch.utils.checkpoint",
    },
    "minigrad.nn": {
        "Unfold": "minigrad.functional.unfold(x, kernel_size, stride=stride)",
        "Fold": "minigrad.functional.fold(x, output_size, kernel_size, stride=stride)",
        "ConstantPad1d": "minigrad.functional.pad(x, widths, value=value)",
        "ReflectionPad1d": 'minigrad.functional.pad(x, widths, "reflect")',
        "functional": "minigrad.functional",
        "utils": "minigrad.optim, which has minigrad.optim.clip_grad_norm_ and minigrad.optim.clip_grad_value_",
    },
    "minigrad.engine.backward": {
        "functional": "minigrad.func, which has jacobian, hessian, hvp, vjp and jvp",
    },
}

IMAGES = "there are no convolutions in two dimensions; patches by minigrad.functional.unfold and a minigrad.nn.Linear"
POOLS = "there is no pooling in two dimensions; minigrad.functional.unfold makes patches, or reshape and .max(axis)"
RECURRENT = "there are no recurrent layers; minigrad.ops.linear_recurrence is one step after the other along an axis, \
and the package transformer has attention"
SPARSE = "there are no sparse tensors; minigrad.gather, minigrad.scatter_add and minigrad.index_add work at places"
COMPLEX = "there are no complex numbers; keep the real and the imaginary part in two tensors"
DECOMPOSED = "there are no decompositions of matrices; without a gradient, numpy.linalg takes x.numpy()"
# What has no counterpart -> why not, or what to do instead.
NOT_HERE = {
    "bfloat16": "NumPy has no such type; minigrad.autocast() computes in float16",
    "pin_memory": "CuPy sends arrays of the host by way of pinned memory as it is",
    "vmap": "operations broadcast, and einsum and @ know batches",
    **dict.fromkeys(["conv2d", "Conv2d", "conv3d", "Conv3d", "conv_transpose1d", "ConvTranspose1d", "conv_transpose2d",
                     "ConvTranspose2d"], IMAGES),
    **dict.fromkeys(["max_pool2d", "MaxPool2d", "avg_pool2d", "AvgPool2d", "adaptive_avg_pool2d", "AdaptiveAvgPool2d",
                     "adaptive_max_pool2d", "AdaptiveMaxPool2d"], POOLS),
    **dict.fromkeys(["interpolate", "Upsample"], "images are not resized; minigrad.repeat does it by whole numbers"),
    **dict.fromkeys(["batch_norm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "instance_norm", "group_norm",
                     "GroupNorm", "InstanceNorm1d", "InstanceNorm2d"],
                    "the layers that normalize go along the features: minigrad.nn.LayerNorm and minigrad.nn.RMSNorm"),
    **dict.fromkeys(["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"], RECURRENT),
    **dict.fromkeys(["sparse", "to_sparse", "to_dense", "is_sparse", "sparse_coo_tensor", "sparse_csr_tensor"], SPARSE),
    **dict.fromkeys(["complex", "complex64", "complex128", "real", "imag", "conj", "angle", "is_complex", "polar",
                     "view_as_complex", "view_as_real"], COMPLEX),
    "fft": "there are no Fourier transforms; without a gradient, numpy.fft takes x.numpy()",
    **dict.fromkeys(["svd", "eig", "eigh", "eigvals", "eigvalsh", "qr", "lu", "cholesky", "inv", "inverse", "pinv",
                     "pinverse", "solve", "lstsq", "det", "slogdet", "logdet", "matrix_rank", "matrix_exp"],
                    DECOMPOSED),
    "linalg": "minigrad.norm, minigrad.cross, minigrad.tensordot and minigrad.diagonal have no module of their own; "
              + DECOMPOSED,
}

# What an `nn.Module` of PyTorch has.
ON_MODULES = {
    "cuda": '.to("cuda")',
    "cpu": '.to("cpu")',
    "half": ".to(dtype=numpy.float16)",
    "float": ".to(dtype=numpy.float32)",
    "double": ".to(dtype=numpy.float64)",
    "type": ".to(dtype=dtype)",
    "register_parameter": "an attribute: module.name = Parameter(array)",
    "register_module": "an attribute: module.name = child",
    "add_module": "an attribute: module.name = child",
    "get_parameter": "dict(module.named_parameters())[name]",
    "get_submodule": "dict(module.named_modules())[name]",
}

# Modules that have the name of a function of PyTorch -> what that is here.
CALLED = {
    "minigrad.tensor": "minigrad.Tensor(data)",
    "minigrad.device": 'a string: "cpu", "cuda" or "cuda:1"',
    "minigrad.checkpoint": "minigrad.func.checkpoint(function, *args)",
}

# Modules of ``torch.nn`` that are in the package transformer, where transformer.interop loads their weights.
IN_TRANSFORMER = {
    "MultiheadAttention": "transformer.MultiHeadAttention",
    "Transformer": "transformer.Transformer",
    "TransformerEncoder": "transformer.Encoder",
    "TransformerDecoder": "transformer.Decoder",
    "TransformerEncoderLayer": "transformer.model.layers.EncoderLayer",
    "TransformerDecoderLayer": "transformer.model.layers.DecoderLayer",
}

# Where a name may be that `minigrad` itself, or the Tensor, does not have.
NAMESPACES = ("minigrad", "minigrad.functional", "minigrad.nn", "minigrad.optim", "minigrad.func", "minigrad.inspect")


def missing(owner: str, name: str) -> str | None:
    """What to say when `owner` (a module of ours, or a class of tensors) has no `name`; None if it means nothing here.

    An in-place method (``add_``) is answered by the form that makes a new tensor.
    """
    if name in IN_TRANSFORMER:
        return f"{owner} has no {name!r}; here it is {IN_TRANSFORMER[name]}, and transformer.interop loads its weights"
    if name in NOT_HERE:
        return f"{owner} has no {name!r}: {NOT_HERE[name]}"
    here = IN.get(owner, {}).get(name) or ELSEWHERE.get(name) or _among_ours(owner, name)
    if here is None and name.endswith("_"):
        stem = name.rstrip("_")
        same = ELSEWHERE.get(stem) or _among_ours(owner, stem)
        if same is not None:
            here = f"x = {'x' if same.startswith('.') else ''}{same}; what is recorded is not changed in place"
    return None if here is None else f"{owner} has no {name!r}; here it is {here}"


def missing_on_module(kind: str, name: str) -> str | None:
    """What to say when an `nn.Module` of the class `kind` has no `name`; None if PyTorch's has none either."""
    return f"{kind} has no {name!r}; here it is {ON_MODULES[name]}" if name in ON_MODULES else None


def called(module: str) -> str:
    """What to say when a module of ours is called."""
    return f"{module} is a module and cannot be called" + (f"; here it is {CALLED[module]}" if module in CALLED else "")


def _among_ours(owner: str, name: str) -> str | None:
    """Where the public name is, if a namespace of ours or the Tensor has it: first where it is like to its owner."""
    if hasattr(sys.modules.get(owner), "__path__") and find_spec(f"{owner}.{name}") is not None:
        return None  # a submodule, which `from owner import name` is about to load
    attribute = getattr(importlib.import_module("minigrad.tensor").Tensor, name, None)
    of_tensor = None if attribute is None else f".{name}(…)" if callable(attribute) else f".{name}"
    found = (f"{module}.{name}" for module in NAMESPACES if name in importlib.import_module(module).__all__)
    return next(found, of_tensor) if owner.startswith("minigrad") else of_tensor or next(found, None)
