"""Rows for convolution and pooling along the last axis: every option, alone and together, and the smallest shapes."""

from collections.abc import Callable
from typing import Any

from minigrad import functional as F

from tests.minigrad.functional.case import Case


def with_options(function: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[..., Any]:
    return lambda *inputs: function(*inputs, *arguments, **options)


def conv1d(**options: Any) -> Callable[..., Any]:
    return with_options(F.conv1d, **options)


SHAPES = ((2, 3, 7), (4, 3, 3), (4,))  # (B, C_in, T), (C_out, C_in, K), (C_out,)

CONVOLUTION = [
    Case("conv1d", F.conv1d, SHAPES),
    Case("conv1d without bias", F.conv1d, SHAPES[:2]),
    Case("conv1d of one sequence", F.conv1d, ((3, 7), (4, 3, 3), (4,))),
    Case("conv1d with more leading axes", F.conv1d, ((2, 1, 3, 7), (4, 3, 3), (4,))),
    Case("conv1d of an empty batch", F.conv1d, ((0, 3, 7), (4, 3, 3), (4,))),
    Case("conv1d with a kernel of one", F.conv1d, ((2, 3, 4), (2, 3, 1), (2,))),
    Case("conv1d with a kernel as long as the input", F.conv1d, ((2, 3, 3), (2, 3, 3), (2,))),
    Case("conv1d by steps of two", conv1d(stride=2), SHAPES),
    Case("conv1d by steps that leave some out", conv1d(stride=4), SHAPES),
    Case("conv1d padded", conv1d(padding=2), SHAPES),
    Case("conv1d of the same length", conv1d(padding="same"), ((2, 3, 5), (4, 3, 4), (4,))),
    Case("conv1d dilated", conv1d(dilation=3), SHAPES),
    Case("conv1d in groups", conv1d(groups=2), ((2, 4, 5), (6, 2, 3), (6,))),
    Case("conv1d channel by channel", conv1d(groups=3), ((2, 3, 5), (3, 1, 2), (3,))),
    Case("conv1d with all options", conv1d(stride=2, padding=3, dilation=2, groups=2), ((2, 4, 6), (2, 2, 3), (2,))),
    Case("max_pool1d", with_options(F.max_pool1d, 2), ((2, 3, 6),)),
    Case("max_pool1d, overlapping", with_options(F.max_pool1d, 3, 1), ((2, 3, 6),)),
    Case("max_pool1d padded, dilated", with_options(F.max_pool1d, 3, 2, 1, 2), ((2, 3, 6),)),
    Case("max_pool1d rounding up", with_options(F.max_pool1d, 4, 3, ceil_mode=True), ((2, 3, 6),)),
    Case("max_pool1d of a vector", with_options(F.max_pool1d, 2), ((5,),)),
    Case("max_pool1d of an empty batch", with_options(F.max_pool1d, 2), ((0, 3, 4),)),
    Case("avg_pool1d", with_options(F.avg_pool1d, 2), ((2, 3, 6),)),
    Case("avg_pool1d, overlapping", with_options(F.avg_pool1d, 3, 1), ((2, 3, 6),)),
    Case("avg_pool1d padded", with_options(F.avg_pool1d, 3, 2, 1), ((2, 3, 6),)),
    Case("avg_pool1d of what is there", with_options(F.avg_pool1d, 3, 2, 1, count_include_pad=False), ((2, 3, 6),)),
    Case("avg_pool1d rounding up", with_options(F.avg_pool1d, 4, 3, 1, True), ((2, 3, 6),)),
    Case("avg_pool1d of a vector", with_options(F.avg_pool1d, 5), ((5,),)),
]
