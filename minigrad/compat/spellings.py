"""The spellings of arguments in PyTorch and NumPy: understood where they mean the same, else named in the error."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from minigrad.engine.errors import Spelling

# PyTorch's or NumPy's spelling of an argument -> ours, which means the same
TORCH_NAMES = {"dim": "axis", "keepdim": "keepdims", "start_dim": "start_axis", "end_dim": "end_axis",
               "dimension": "axis", "dims": "axes", "pad_width": "widths", "constant_values": "value",
               "condlist": "conditions", "choicelist": "choices", "ddof": "correction", "a_min": "min",
               "a_max": "max"}
# Arguments that are not understood -> what takes their place here: the first of these that the function has
OURS = {
    "p": ("ord",),
    "dims": ("axes", "reps", "axis"),
    "shifts": ("shift",),
    "steps": ("num",),
    "input": ("x",),
    "a": ("x",),
    "newshape": ("shape",),
    **dict.fromkeys(("start", "stop", "step"), ("bounds",)),
    "diagonal": ("k",),
    "dim0": ("axis1",),
    "dim1": ("axis1",),
    "dim2": ("axis2",),
    "split_size_or_sections": ("sizes",),
    "indices_or_sections": ("sizes",),
    "size": ("shape",),
    "unbiased": ("correction",),
    "need_weights": ("return_weights",),
}
REMEDIES = {
    "unbiased": "unbiased=True is correction=1 here, and the default is 0",
    "indices_or_sections": "sizes are those of the parts; x.chunk(n) makes n parts",
    "normalized_shape": "leave it out, the last axis is normalized",
    **dict.fromkeys(("start", "stop", "step"), "the bounds are given in a row: arange(start, stop, step)"),
    "dtype": "convert with .astype(dtype)",
    "out": "every operation makes a new tensor (and for numpy.f(x) write x.f() or minigrad.f(x))",
    "spacing": "the spacings are given in a row: gradient(x, 0.5, axis=1)",
    "inplace": "every operation makes a new tensor",
    "key_padding_mask": "give attn_mask=padding_mask(ids), of the package transformer, True = may attend",
    "device_type": "the device is that of the tensors",
}
# Functions to which PyTorch lets one give more arguments in a row
IN_A_ROW = {
    "repeat": "PyTorch's repeat, of a whole tensor, is tile here, with all counts as one argument: tile((2, 1))",
    "tile": "reps are one argument: tile((2, 1))",
    "flip": "several axes are one argument: flip((0, 1))",
    "transpose": "swapaxes exchanges two axes: swapaxes(x, 0, 1); all axes in a new order are one argument",
}


def rename(keywords: dict[str, Any], parameters: Collection[str], operation: str) -> dict[str, Any]:
    """The keyword arguments, with those that name one of the `parameters` as PyTorch or NumPy does so named."""
    if TORCH_NAMES.keys().isdisjoint(keywords):
        return keywords
    renamed = {}
    for name, value in keywords.items():
        ours = TORCH_NAMES.get(name, name)
        if ours in parameters and name not in parameters:
            if ours in keywords:
                raise TypeError(f"{operation}: {name} is another name for {ours}; give one of them")
            name = ours
        renamed[name] = value
    return renamed


def advice(keywords: Iterable[str], parameters: Collection[str], operation: str, problem: str) -> str:
    """What to give in place of the keyword arguments that an operation lacks: an end for the error, or nothing."""
    told = "".join(f"; {text}" for text in dict.fromkeys(_of_one(name, parameters) for name in keywords) if text)
    if "positional argument" in problem and operation in IN_A_ROW:
        told += f"; {IN_A_ROW[operation]}"
    return told


def _of_one(name: str, parameters: Collection[str]) -> str:
    """What to give in place of the argument `name`, which a function with these parameters lacks; "" if unknown."""
    if name in parameters:
        return ""
    ours = next((ours for ours in OURS.get(name, ()) if ours in parameters), None)
    if ours is None and name in OURS:
        return ""
    return REMEDIES.get(name, f"{name} is called {ours} here" if ours else "")


def install() -> None:
    """Let every call understand these spellings."""
    Spelling.rename, Spelling.advice = staticmethod(rename), staticmethod(advice)  # type: ignore[method-assign]
