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
    "new_full": "minigrad.full(shape, value, dtype, device)",
    "new_empty": "minigrad.zeros(shape, dtype, device)",
    "new_tensor": "minigrad.Tensor(data, dtype, device)",
    "scalar_tensor": "minigrad.Tensor(number)",
    "is_tensor": "isinstance(x, minigrad.Tensor)",
    "rand": "minigrad.Tensor(minigrad.random.generator().random(shape))",
    "logspace": "minigrad.Tensor(numpy.logspace(start, stop, num))",
    "randn": "minigrad.Tensor(minigrad.random.generator().normal(size=shape))",
    "randint": "minigrad.Tensor(minigrad.random.generator().integers(low, high, shape))",
    "rand_like": "minigrad.Tensor(minigrad.random.generator().random(x.shape))",
    "randn_like": "minigrad.Tensor(minigrad.random.generator().normal(size=x.shape))",
    "bernoulli": "minigrad.Tensor(minigrad.random.generator().random(p.shape) < p)",
    "seed": "minigrad.manual_seed(n)",
    "Generator": "minigrad.random.fork(seed), a block whose draws are its own",
    "get_rng_state": "minigrad.random.get_state()",
    "set_rng_state": "minigrad.random.set_state(state)",
    "triu_indices": "numpy.triu_indices(n, k)",
    "tril_indices": "numpy.tril_indices(n, k)",
    "tri": "minigrad.tril(minigrad.ones((n, m)))",
    "copy": ".clone()",
    "randperm": "minigrad.Tensor(minigrad.random.generator().permutation(n))",
    # dtypes and devices
    "float16": "numpy.float16",
    "float32": "numpy.float32",
    "float64": "numpy.float64",
    "uint8": "numpy.uint8",
    "int8": "numpy.int8",
    "int16": "numpy.int16",
    "int32": "numpy.int32",
    "int64": "numpy.int64",
    "bool": "numpy.bool_",
    "half": ".astype(numpy.float16)",
    "float": ".astype(numpy.float32)",
    "double": ".astype(numpy.float64)",
    "long": ".astype(numpy.int64)",
    "int": ".astype(numpy.int32)",
    "short": ".astype(numpy.int16)",
    "char": ".astype(numpy.int8)",
    "byte": ".astype(numpy.uint8)",
    "type": ".astype(dtype)",
    "type_as": ".to(other.device, other.dtype)",
    "is_floating_point": 'x.dtype.kind == "f"',
    "finfo": "numpy.finfo(dtype)",
    "iinfo": "numpy.iinfo(dtype)",
    "itemsize": ".dtype.itemsize",
    "element_size": ".dtype.itemsize",
    "nbytes": ".size * x.dtype.itemsize",
    "data_ptr": ".data, the raw array",
    "storage": ".data, the raw array",
    "strides": ".data.strides, in bytes",
    "stride": ".data.strides, in bytes",
    "is_contiguous": ".data.flags.c_contiguous",
    "tobytes": ".numpy().tobytes()",
    "tofile": ".numpy().tofile(path)",
    "Size": "a tuple",
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
    "H": ".mT",
    "matrix_transpose": ".mT",
    "permute_dims": ".transpose(axes)",
    "swapdims": ".swapaxes(axis1, axis2)",
    "dim": ".ndim",
    "ndimension": ".ndim",
    "numel": ".size",
    "nelement": ".size",
    "contiguous": ".clone(), though no operation here asks for it",
    "sliding_window_view": "minigrad.unfold(x, axis, size, step)",
    "rollaxis": ".moveaxis(source, destination)",
    "hsplit": ".split(sizes, 1)",
    "vsplit": ".split(sizes, 0)",
    "dsplit": ".split(sizes, 2)",
    "array_split": ".split(sizes, axis)",
    "tensor_split": ".split(sizes, axis)",
    "split_with_sizes": ".split(sizes, axis)",
    "append": "minigrad.concatenate([x, y])",
    "flat": ".ravel()",
    "resize": ".reshape(shape)",
    "broadcast_tensors": "minigrad.broadcast_to(x, numpy.broadcast_shapes(x.shape, y.shape))",
    "broadcast_arrays": "minigrad.broadcast_to(x, numpy.broadcast_shapes(x.shape, y.shape))",
    "as_strided": "minigrad.unfold(x, axis, size, step), of windows",
    "row_stack": "minigrad.vstack(tensors)",
    "count_nonzero": "(x != 0).sum(axis)",
    "narrow": "x[start:start + length]",
    "take_along_dim": ".gather(axis, index)",
    "take_along_axis": ".gather(axis, index)",
    "put_along_axis": ".scatter(axis, index, src)",
    "compress": "x[mask]",
    "extract": "x[mask]",
    "piecewise": "minigrad.select(conditions, choices)",
    "msort": ".sort(0)",
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
    **dict.fromkeys(["deg2rad", "radians"], "x * (numpy.pi / 180)"),
    **dict.fromkeys(["rad2deg", "degrees"], "x * (180 / numpy.pi)"),
    "sgn": "minigrad.sign(x)",
    "mod": "x % y",
    "divmod": "x // y and x % y",
    "float_power": "minigrad.power(x, y), or x ** y",
    "positive": "+x",
    "cbrt": "minigrad.sign(x) * minigrad.absolute(x) ** (1 / 3)",
    "logit": "minigrad.log(x / (1 - x))",
    "erfc": "1 - minigrad.erf(x)",
    "isposinf": "x == numpy.inf",
    "isneginf": "x == -numpy.inf",
    "is_nonzero": "bool(x)",
    "equal": "x == y, for each element; minigrad.allclose(x, y, rtol=0, atol=0) for all at once",
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
    **dict.fromkeys(["addmm", "addmv", "baddbmm"], "x @ y + z"),
    **dict.fromkeys(["chain_matmul", "multi_dot"], "x @ y @ z"),
    "ger": "minigrad.outer(x, y)",
    "vecdot": "(x * y).sum(axis)",
    "vdot": "(x * y).sum()",
    "dist": "minigrad.norm(x - y)",
    "cdist": "minigrad.norm(x[:, None] - y, axis=-1)",
    "clamp": ".clip(min, max)",
    "clamp_min": ".clip(min)",
    "amax": ".max(axis)",
    "amin": ".min(axis)",
    "aminmax": "x.min(axis) and x.max(axis)",
    "ptp": "x.max(axis) - x.min(axis)",
    "std_mean": "x.std(axis) and x.mean(axis)",
    "var_mean": "x.var(axis) and x.mean(axis)",
    "average": "(x * weights).sum(axis) / weights.sum(axis)",
    "nansum": "minigrad.where(minigrad.isnan(x), 0, x).sum(axis)",
    "nanmax": "minigrad.where(minigrad.isnan(x), -numpy.inf, x).max(axis)",
    "nanmin": "minigrad.where(minigrad.isnan(x), numpy.inf, x).min(axis)",
    "quantile": ".median(axis), for the quantile 0.5",
    "values": "the tensor itself: x.max(axis) and x.sort(axis) return the values alone",
    "indices": "x.argmax(axis) or x.argsort(axis), beside x.max(axis) and x.sort(axis), which return values alone",
    # gradients and transforms
    "Function": "minigrad.primitive, which makes an operation of a function and its gradient rules",
    "grad_fn": ".is_leaf, or the repr, which names the operation",
    "inference_mode": "minigrad.no_grad()",
    "set_grad_enabled": "minigrad.enable_grad() and minigrad.no_grad()",
    "detach_": ".detach()",
    "retain_graph": ".backward(retain_graph=True)",
    "make_functional": "minigrad.func.functional_call(module, parameters, *args)",
    "jacrev": "minigrad.func.jacobian(function)",
    "jacfwd": "minigrad.func.jacobian(function)",
    "grad_and_value": "minigrad.func.value_and_grad(function), which returns the value first",
    "profiler": "minigrad.profile(), a context manager; minigrad.inspect.span(name) for record_function",
    "record_function": "minigrad.inspect.span(name)",
    # functions and layers
    **dict.fromkeys(["swish", "Swish"], "minigrad.functional.silu"),
    **dict.fromkeys(["hardswish", "Hardswish"], "x * minigrad.functional.hardsigmoid(x)"),
    **dict.fromkeys(["prelu", "PReLU"], "minigrad.where(x > 0, x, weight * x)"),
    **dict.fromkeys(["threshold", "Threshold"], "minigrad.where(x > threshold, x, value)"),
    **dict.fromkeys(["softmin", "Softmin"], "minigrad.functional.softmax(-x, axis)"),
    **dict.fromkeys(["glu", "GLU"], "a * minigrad.sigmoid(b), with a, b = x.chunk(2, axis)"),
    **dict.fromkeys(["tanhshrink", "Tanhshrink"], "x - minigrad.tanh(x)"),
    **dict.fromkeys(["hardshrink", "Hardshrink"], "minigrad.where(minigrad.absolute(x) > lambd, x, 0)"),
    **dict.fromkeys(["softshrink", "Softshrink"], "minigrad.sign(x) * minigrad.relu(minigrad.absolute(x) - lambd)"),
    **dict.fromkeys(["bilinear", "Bilinear"], 'minigrad.einsum("...i,oij,...j->...o", x, weight, y)'),
    "log_sigmoid": "minigrad.functional.logsigmoid",
    "embedding_bag": "minigrad.functional.embedding(ids, weight).mean(-2)",
    "multi_head_attention_forward": "minigrad.functional.multi_head_attention(query, key, value, num_heads)",
    "pairwise_distance": "minigrad.norm(x - y, axis=-1)",
    "Buffer": "module.register_buffer(name, tensor)",
    # optimizers, schedules and files
    "autograd": "minigrad.grad, and minigrad.func",
    "amp": "minigrad.autocast(), a context manager, and minigrad.optim.GradScaler()",
    "GradScaler": "minigrad.optim.GradScaler()",
    "lr_scheduler": "minigrad.optim itself, which has minigrad.optim.LambdaLR and other schedules",
    "CosineAnnealingLR": "minigrad.optim.CosineLR(optimizer, warmup_steps, total_steps), stepped after every update",
    "StepLR": "minigrad.optim.LambdaLR(optimizer, lambda step: gamma ** (step // step_size))",
    "MultiStepLR": "minigrad.optim.LambdaLR(optimizer, lambda step: gamma ** sum(step >= n for n in milestones))",
    **dict.fromkeys(["ConstantLR", "PolynomialLR", "CyclicLR", "OneCycleLR", "MultiplicativeLR", "SequentialLR",
                     "CosineAnnealingWarmRestarts"],
                    "minigrad.optim.LambdaLR(optimizer, factor), for any function of the step"),
    "clip_grad_norm": "minigrad.optim.clip_grad_norm_(parameters, max_norm)",
    "ExponentialLR": "minigrad.optim.LambdaLR(optimizer, lambda step: gamma ** step)",
    "save": "minigrad.checkpoint.save_tensors(path, module.state_dict())",
    "load": "module.load_state_dict(minigrad.checkpoint.load_tensors(path)[0])",
    # changes in place
    "zero_": "x[...] = 0",
    "fill_": "x[...] = value",
    "fill": "x[...] = value",
    "normal_": "minigrad.nn.init.normal_(x, mean, std)",
    "uniform_": "minigrad.nn.init.uniform_(x, low, high)",
}

# Names that mean one thing in one namespace and something else, or nothing, in others.
IN: dict[str, dict[str, str]] = {
    "minigrad": {
        "cuda": 'device="cuda", and minigrad.device.cuda_status().devices for torch.cuda.is_available()',
        "utils": "minigrad.func.checkpoint(function, *args) for torch.utils.checkpoint",
        "short": "numpy.int16",
        "set_default_device": 'device="cuda" where a tensor is made, and module.to("cuda")',
        "newaxis": "None, as in x[:, None]",
        **{name: f"numpy.{name}" for name in ("pi", "e", "inf", "nan")},
    },
    "minigrad.random": {
        **{name: f"minigrad.random.generator().{name}, as of numpy.random.Generator"
           for name in ("normal", "uniform", "choice", "permutation", "shuffle")},
        "default_rng": "minigrad.random.generator()",
    },
    "minigrad.device": {
        "is_available": "minigrad.device.cuda_status().devices > 0",
        "device_count": "minigrad.device.cuda_status().devices",
    },
    "minigrad.nn.init": {
        **{name: f"minigrad.nn.init.{name}_" for name in (
            "xavier_uniform", "xavier_normal", "kaiming_uniform", "normal", "uniform", "constant", "zeros", "ones")},
        "kaiming_normal_": "minigrad.nn.init.normal_(x, std=(2 / fan_in) ** 0.5)",
        "orthogonal_": "x.copy_(numpy.linalg.qr(minigrad.random.generator().normal(size=x.shape))[0]), of a square x",
        "eye_": "x.copy_(minigrad.eye(*x.shape))",
    },
    "minigrad.checkpoint": {
        "load_file": "minigrad.checkpoint.load_tensors(path)",
        "save_model": "minigrad.checkpoint.save_tensors(path, module.state_dict())",
    },
    "minigrad.nn": {
        "Unfold": "minigrad.functional.unfold(x, kernel_size, stride=stride)",
        "Fold": "minigrad.functional.fold(x, output_size, kernel_size, stride=stride)",
        "LazyLinear": "minigrad.nn.Linear(in_features, out_features)",
        "ZeroPad1d": "minigrad.functional.pad(x, widths)",
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
    **dict.fromkeys(["vmap", "vectorize", "apply_along_axis"], "operations broadcast, and einsum and @ know batches"),
    **{name: f"without a gradient, numpy.{name} takes x.numpy()" for name in [
        "unique", "histogram", "searchsorted", "digitize", "partition", "argpartition", "lexsort", "interp", "isin",
        "percentile", "nanmedian", "cov", "corrcoef", "convolve", "correlate", "gcd", "lcm", "unwrap", "i0"]},
    **dict.fromkeys(["erfinv", "lgamma", "digamma"],
                    "minigrad.primitive makes an operation of a function and its gradient rules"),
    **dict.fromkeys(["get_default_dtype", "set_default_dtype"], "numbers become float32 where no dtype is given; "
                    "module.to(dtype=numpy.float64) converts a module"),
    "set_printoptions": "the repr is short; numpy.set_printoptions acts on print(x.numpy())",
    **dict.fromkeys(["Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD", "LBFGS",
                     "SparseAdam", "Adafactor", "Lion", "Muon"],
                    "there are minigrad.optim.SGD, minigrad.optim.Adam and minigrad.optim.AdamW"),
    **dict.fromkeys(["distributed", "DataParallel", "SyncBatchNorm"],
                    "one process trains on one device; minigrad.parallel.threads divides a batch among threads"),
    **dict.fromkeys(["dropout1d", "dropout2d", "alpha_dropout", "feature_alpha_dropout", "Dropout1d", "Dropout2d",
                     "AlphaDropout"], "minigrad.functional.dropout drops single elements, and "
                    "minigrad.functional.dropout_with_mask those of a mask of yours"),
    **dict.fromkeys(["poisson_nll_loss", "gaussian_nll_loss", "hinge_embedding_loss", "margin_ranking_loss",
                     "triplet_margin_loss", "cosine_embedding_loss", "multi_margin_loss", "multilabel_margin_loss",
                     "soft_margin_loss", "PoissonNLLLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "MarginRankingLoss",
                     "TripletMarginLoss", "CosineEmbeddingLoss", "MultiMarginLoss", "MultiLabelMarginLoss",
                     "SoftMarginLoss", "ctc_loss", "CTCLoss"],
                    "write the loss with operations; its gradient comes by itself"),
    **dict.fromkeys(["conv2d", "Conv2d", "conv3d", "Conv3d", "conv_transpose1d", "ConvTranspose1d", "conv_transpose2d",
                     "ConvTranspose2d"], IMAGES),
    **dict.fromkeys(["max_pool2d", "MaxPool2d", "avg_pool2d", "AvgPool2d", "adaptive_avg_pool2d", "AdaptiveAvgPool2d",
                     "adaptive_max_pool2d", "AdaptiveMaxPool2d"], POOLS),
    **dict.fromkeys(["interpolate", "upsample", "Upsample"],
                    "images are not resized; minigrad.repeat does it by whole numbers"),
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
    "device": "next(module.parameters()).device",
    "dtype": "next(module.parameters()).dtype",
    "freeze": "module.requires_grad_(False)",
    "save": "minigrad.checkpoint.save_tensors(path, module.state_dict())",
    "load": "module.load_state_dict(minigrad.checkpoint.load_tensors(path)[0])",
    "register_backward_hook": "module.register_full_backward_hook(hook)",
    "get_buffer": "dict(module.named_buffers())[name]",
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
