"""conv1d, max_pool1d and avg_pool1d against loops over their definitions."""

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minigrad import Tensor, fused, grad
from minigrad import functional as F

RNG = np.random.default_rng(51)


def convolved(x, weight, bias, stride, before, after, dilation, groups):
    """The definition: an output channel sees the input channels of its group."""
    batch, channels, length = x.shape
    out_channels, in_group, size = weight.shape
    padded = np.zeros((batch, channels, before + length + after))
    padded[..., before:before + length] = x
    count = (padded.shape[-1] - dilation * (size - 1) - 1) // stride + 1
    out = np.zeros((batch, out_channels, count))
    for b, o, place in np.ndindex(*out.shape):
        first = o // (out_channels // groups) * in_group
        out[b, o, place] = bias[o] + sum(weight[o, c, k] * padded[b, first + c, place * stride + k * dilation]
                                         for c in range(in_group) for k in range(size))
    return out


@settings(derandomize=True, deadline=None, max_examples=100)
@given(length=st.integers(1, 8), size=st.integers(1, 4), stride=st.integers(1, 4),
       padding=st.sampled_from([0, 1, 2, 3, "valid", "same"]),
       dilation=st.integers(1, 3), groups=st.sampled_from([1, 2, 4]), batch=st.integers(1, 2), enabled=st.booleans())
def test_conv1d_is_its_definition(length, size, stride, padding, dilation, groups, batch, enabled):
    """Padding of the "same" length puts the odd zero on the right."""
    stride = 1 if padding == "same" else stride
    before = {"valid": 0, "same": dilation * (size - 1) // 2}.get(padding, padding)
    after = dilation * (size - 1) - before if padding == "same" else before
    assume(length + before + after >= dilation * (size - 1) + 1)
    rng = np.random.default_rng(52)
    x, weight, bias = rng.normal(size=(batch, 4, length)), rng.normal(size=(4, 4 // groups, size)), rng.normal(size=4)
    expected = convolved(x, weight, bias, stride, before, after, dilation, groups)
    inputs = [Tensor(array, requires_grad=True) for array in (x, weight, bias)]
    with fused(enabled):
        out = F.conv1d(*inputs, stride, padding, dilation, groups)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-13)

    # It is linear in the input and in the weight: the gradient is the transpose of a convolution by the other.
    g = rng.normal(size=out.shape)
    for_input, for_weight, for_bias = (found.numpy() for found in grad(out, inputs, g))
    options = (np.zeros(4), stride, before, after, dilation, groups)
    dx, dweight = rng.normal(size=x.shape), rng.normal(size=weight.shape)
    along_x, along_weight = (g * convolved(dx, weight, *options)).sum(), (g * convolved(x, dweight, *options)).sum()
    np.testing.assert_allclose([(for_input * dx).sum(), (for_weight * dweight).sum()], [along_x, along_weight],
                               rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(for_bias, g.sum(axis=(0, 2)), rtol=1e-12, atol=1e-13)


def test_the_tape_keeps_the_input_not_its_columns():
    """Nothing of the size of the columns, K times the input's, stays alive for the backward pass."""
    x, weight = (Tensor(RNG.normal(size=shape), requires_grad=True) for shape in ((2, 3, 50), (4, 3, 10)))
    saved = F.conv1d(x, weight)._node.saved
    assert max(value.size for value in saved if isinstance(value, np.ndarray)) == x.size


# --- Pooling


def pooled(x, size, stride, padding, dilation, ceil_mode, value):
    """The definition: `value` of the places of each window; those outside of the input are None, padding is "pad"."""
    length, out, start = x.shape[-1], [], -padding
    span = dilation * (size - 1) + 1
    while start + span <= length + padding or (ceil_mode and start < length):
        places = [start + k * dilation for k in range(size)]
        out.append(value(x, [p for p in places if 0 <= p < length], sum(-padding <= p < length + padding
                                                                        for p in places)))
        if start + span >= length + padding:
            break
        start += stride or size
    return np.stack(out, axis=-1)


POOLING = {"size": st.integers(1, 4), "stride": st.none() | st.integers(1, 5), "length": st.integers(1, 9),
           "ceil": st.booleans(), "padding": st.integers(0, 2)}


@settings(derandomize=True, deadline=None, max_examples=100)
@given(dilation=st.integers(1, 3), **POOLING)
def test_max_pool1d_is_its_definition(size, stride, length, ceil, padding, dilation):
    assume(2 * padding <= size and length + 2 * padding >= dilation * (size - 1) + 1)
    x = np.random.default_rng(53).permutation(2 * length).reshape(2, length) * 0.1
    expected = pooled(x, size, stride, padding, dilation, ceil,
                      lambda x, inside, _: x[:, inside].max(axis=-1, initial=-math.inf))
    out = F.max_pool1d(Tensor(x), size, stride, padding, dilation, ceil)
    np.testing.assert_array_equal(out.numpy(), expected)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(include=st.booleans(), **POOLING)
def test_avg_pool1d_is_its_definition(size, stride, length, ceil, padding, include):
    assume(2 * padding <= size and length + 2 * padding >= size)
    x = np.random.default_rng(54).normal(size=(2, length))
    expected = pooled(x, size, stride, padding, 1, ceil, lambda x, inside, all_of_it:
                      x[:, inside].sum(axis=-1) / (all_of_it if include else len(inside)))
    out = F.avg_pool1d(Tensor(x), size, stride, padding, ceil, include)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-13, atol=1e-15)


def test_ties_share_the_gradient_and_padding_gets_none(device):
    x = Tensor([[2.0, 2.0, -3.0, -3.0]], device=device, requires_grad=True)
    F.max_pool1d(x, 2, 1, padding=1).backward([[1.0, 10.0, 100.0, 1000.0, 10000.0]])  # (pad, 2), (2, 2), (2, -3), …
    np.testing.assert_array_equal(x.grad.numpy(), [[1 + 5, 5 + 100, 500, 500 + 10000]])
