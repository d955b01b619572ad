"""Scaled dot-product attention, of one head and of several (Vaswani et al. 2017, arXiv:1706.03762, section 3.2).

Shapes: B stands for a batch, H for the heads, T for the queries, S for the keys and values, d for the features of a
query and of a key, v for those of a value. Leading axes, such as (B, H), are "…".

One convention for masks: boolean, **True = may attend**, broadcastable to (…, T, S). A query that may attend to nothing
has zero weights, zero output and zero gradient.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad import ops, random
from minigrad.arguments import numbers_on
from minigrad.device import device_of, is_array, is_host, on_device_of, to_device, xp
from minigrad.device.sums import broadcasts_to, sum_to
from minigrad.engine.node import Saved, TensorBase
from minigrad.engine.primitive import primitive, public
from minigrad.functional.compositions import note, tap
from minigrad.functional.dropout import check_probability, dropout_with_mask
from minigrad.functional.grouped_queries import group_size, of_groups
from minigrad.functional.softmax import softmax
from minigrad.tensor import as_tensor

# --------------------------------------------------------------------------- one head, or several apart


@primitive(floating=True, composite=True, precision="float16", fresh=True)
def attention(query, key, value, mask, dropped, p, scale, bias=None):
    """``O = A' V`` with ``A = softmax(scale · Q Kᵀ + B)``, and A' = A after dropout; keeps A for the backward pass.

    Args:
        query, key, value: Q (…, T, d), K (…, S, d), V (…, S, v), of the same leading axes.
        mask: True where a query may attend to a key, or None.
        dropped: the mask of dropout, True = kept, or None.
        p: the probability with which it was drawn.
        bias: B, broadcastable to (…, T, S), or None.
    """
    query, key, value = tap("queries", query), tap("keys", key), tap("values", value)
    note(scale=scale, mask=mask, dropped=dropped, p=p)
    # 1. The scores: how well each query fits each key.
    scores = (query * scale) @ key.mT  # S: (…, T, d) @ (…, d, S) -> (…, T, S); float16 has no room for Q Kᵀ
    scores = tap("scaled", tap("scores", scores, scale))
    # 2. The bias, and the mask: e^-inf = 0, so the softmax gives no weight to such a key.
    if bias is not None:
        scores = tap("biased", scores + bias)
    if mask is not None:
        scores = tap("masked", ops.where(mask, scores, -math.inf))
    # 3. The softmax: the weights of a query are positive and sum to 1.
    weights = tap("weights", softmax(scores, -1))  # A: (…, T, S)
    # 4. Dropout: some weights are zeroed, the others scaled up.
    kept = weights if dropped is None else tap("dropped_weights", dropout_with_mask(weights, dropped, p))  # A'
    # 5. The output: for each query the mean of the values, by its weights.
    return tap("context", kept @ value), Saved(weights=weights)  # O: (…, T, S) @ (…, S, v) -> (…, T, v)


# For float32 and float64 the bodies in minigrad/kernels run in place of this and of the forward.
@attention.joint_gradient("query", "key", "value", "bias")
def attention_gradient(g, query, key, value, dropped, p, scale, bias_shape, needs, saved):
    """The steps of the forward in reverse; dX stands for the gradient of X, and g is dO."""
    weights = saved.weights
    kept = weights if dropped is None else dropout_with_mask(weights, dropped, p)
    # 5. forward: O = A' V                   so here: dV = A'ᵀ dO,  dA' = dO Vᵀ
    grad_value = kept.mT @ g  # (…, S, T) @ (…, T, v) -> (…, S, v)
    grad_kept = g @ value.mT  # (…, T, v) @ (…, v, S) -> (…, T, S)
    # 4. forward: A' = A ∘ M / (1 - p)       so here: dA = dA' ∘ M / (1 - p)
    grad_weights = grad_kept if dropped is None else dropout_with_mask(grad_kept, dropped, p)
    # 3. forward: A = softmax(S), by rows    so here: dS = A ∘ (dA - Σⱼ A dA)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(axis=-1, keepdims=True))
    # 2. forward: S = -inf in masked cells   so here: dS = 0 in these, as it is already, because A is 0 there
    #    forward: S + B                      so here: dB = dS, summed over the axes along which B was broadcast
    grad_bias = sum_to(grad_scores, bias_shape) if needs.bias else None
    # 1. forward: S = scale · Q Kᵀ           so here: dQ = scale · dS K,  dK = scale · dSᵀ Q
    grad_query = grad_scores @ (key * scale)  # (…, T, S) @ (…, S, d) -> (…, T, d)
    grad_key = grad_scores.mT @ (query * scale)  # (…, S, T) @ (…, T, d) -> (…, S, d)
    return grad_query, grad_key, grad_value, grad_bias


# --------------------------------------------------------------------------- several heads, side by side


def split_heads(x: Any, num_heads: int) -> Any:
    """Give each head its share of the features: (B, T, D) → (B, H, T, D/H)."""
    batch, length, features = x.shape
    x = x.reshape((batch, length, num_heads, features // num_heads))  # (B, T, H, D/H)
    return x.swapaxes(1, 2)  # (B, H, T, D/H)


def join_heads(x: Any) -> Any:
    """The inverse of `split_heads`: (B, H, T, D/H) → (B, T, D)."""
    batch, heads, length, features = x.shape
    return x.swapaxes(1, 2).reshape((batch, length, heads * features))


@primitive(floating=True, composite=True, precision="float16", fresh=True)
def attention_of_heads(query, key, value, mask, dropped, p, scale, bias, num_heads):
    """Split, `attention` of each head, join: (B, T, D), (B, S, D) and (B, S, V) → (B, T, V)."""
    heads = [split_heads(x, num_heads) for x in (query, key, value)]
    out, saved = attention.forward(*heads, mask, dropped, p, scale, bias)
    return tap("concatenated", join_heads(out)), saved


attention_of_heads.name = "attention"  # profiles and memory meters list both forms under one name


@attention_of_heads.joint_gradient("query", "key", "value", "bias")
def attention_of_heads_gradient(g, query, key, value, dropped, p, scale, bias_shape, num_heads, needs, saved):
    # forward: split, attend, join          so here: split, the gradients of attention, join
    heads = [split_heads(x, num_heads) for x in (g, query, key, value)]
    *of_heads, grad_bias = attention_gradient(*heads, dropped, p, scale, bias_shape, needs, saved)
    return *map(join_heads, of_heads), grad_bias


# --------------------------------------------------------------------------- what people call


@public
def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False, *,
                                 attn_bias: Any = None, dropped: Any = None, return_weights: bool = False) -> Any:
    """``softmax(Q Kᵀ / √d + B) V``.

    Args:
        query: (…, T, d)
        key: (…, S, d)
        value: (…, S, d_v)
        attn_mask: boolean, True = may attend, broadcastable to (…, T, S); a NumPy array is sent to where the query is.
            Two axes are not enough where there are as many examples as queries, but for a causal mask or a window: with
            heads, ``mask[:, None, None, :]`` has a row for each example, ``mask[None, None]`` one for each query.
        dropout_p: probability of zeroing a weight; applied whenever it is not 0, as in PyTorch.
        is_causal: query t may attend to keys 0 … t only (joined with `attn_mask` by ``&``).
        scale: in place of ``1/√d``.
        enable_gqa: query (…, H, T, d) may have more heads than key and value, (…, H/G, S, ·); each G in a row share one
            (see `minigrad.functional.grouped_queries`).
        attn_bias: B, floating, broadcastable to (…, T, S), added to the scaled scores, with a gradient: ALiBi (Press et
            al. 2022, arXiv:2108.12409), relative positions. An array is sent to where the query is, in its dtype.
        dropped: a boolean array (…, T, S), True = kept, in place of a dropout mask drawn here (to freeze it).
        return_weights: also return the weights before dropout, (…, T, S); gradients flow through them too.

    Returns:
        (…, T, d_v), or that and the weights.

    Raises:
        TypeError: a mask that is not boolean, a bias that is not floating.
        ValueError: shapes that do not fit, a mask (T, S) that may be (B, S), a probability outside [0, 1).
    """
    few_axes = min(len(x.shape) for x in (query, key, value)) < 2
    if few_axes or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError("scaled_dot_product_attention: query (…, T, d), key (…, S, d) and value (…, S, d_v) expected, "
                         f"got {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}")
    group = group_size(query, key, value) if enable_gqa else 1
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        query, key, value = with_common_lead(query, key, value, group)
    cells = (*query.shape[:-1], key.shape[-2])  # (…, T, S)
    mask, bias = attn_mask, attn_bias
    if not (mask is bias is dropped is None and dropout_p == 0):
        mask, bias, dropped, dropout_p = checked(mask, bias, dropped, dropout_p, query, cells,
                                                 "scaled_dot_product_attention")
    if is_causal:
        mask = causal_mask(query, cells, mask)
    scale = 1 / math.sqrt(max(1, query.shape[-1])) if scale is None else scale  # without features all scores are 0
    attend = with_weights(attention) if return_weights else attention
    if group > 1:
        attend = of_groups(attend, group)
    return attend(query, key, value, mask, dropped, dropout_p, scale, bias)


@public
def multi_head_attention(query: Any, key: Any, value: Any, num_heads: int, attn_mask: Any = None,
                         dropout_p: float = 0.0, *, attn_bias: Any = None, dropped: Any = None,
                         return_weights: bool = False) -> Any:
    """``Concat(head₁, …, head_H)`` with ``headᵢ = softmax(Qᵢ Kᵢᵀ / √(D/H) + Bᵢ) Vᵢ``, of projected inputs.

    Args:
        query: (B, T, D); features i·D/H to (i + 1)·D/H are head i's.
        key: (B, S, D)
        value: (B, S, V)
        num_heads: H, a divisor of D and of V.
        attn_mask, attn_bias: as for `scaled_dot_product_attention`, broadcastable to (B, H, T, S).
        dropout_p, dropped: as for `scaled_dot_product_attention`; `dropped` broadcasts to (B, H, T, S).
        return_weights: also return the weights before dropout, (B, H, T, S); gradients flow through them too.

    Returns:
        (B, T, V), or that and the weights.

    Raises:
        TypeError: a mask that is not boolean, a bias that is not floating.
        ValueError: shapes that do not fit, a mask (T, S) that may be (B, S), a probability outside [0, 1).
    """
    shapes = [tuple(x.shape) for x in (query, key, value)]
    query_fits = [len(shape) for shape in shapes] == [3, 3, 3] and shapes[0][::2] == shapes[1][::2]
    if (not query_fits or shapes[1][:2] != shapes[2][:2] or num_heads < 1 or query.shape[-1] % num_heads
            or value.shape[-1] % num_heads):
        raise ValueError("multi_head_attention: query (B, T, D), key (B, S, D) and value (B, S, V) expected, D and V "
                         f"multiples of num_heads = {num_heads}, got {', '.join(map(str, shapes))}")
    batch, length, features = query.shape
    mask, bias, cells = attn_mask, attn_bias, (batch, num_heads, length, key.shape[-2])
    if not (mask is bias is dropped is None and dropout_p == 0):
        mask, bias, dropped, dropout_p = checked(mask, bias, dropped, dropout_p, query, cells, "multi_head_attention")
    scale = 1 / math.sqrt(max(1, features // num_heads))  # without features all scores are 0
    attend = with_weights(attention_of_heads) if return_weights else attention_of_heads
    return attend(query, key, value, mask, dropped, dropout_p, scale, bias, num_heads)


def with_weights(form: Any) -> Any:
    """One of the two operations as a function that returns the weights, too: of tensors, they are a step of it."""
    def attend(*args: Any) -> tuple[Any, Any]:
        inputs: Any = args[:3]
        if any(isinstance(x, TensorBase) for x in inputs):
            inputs = map(as_tensor, inputs)
        out, saved = form.forward(*inputs, *args[3:])
        return out, tap("returned_weights", saved.weights)

    return attend


def with_common_lead(query: Any, key: Any, value: Any, group: int) -> list[Any]:
    """The three, broadcast to the same leading axes; a head of keys and values counts for `group` heads of queries."""
    folded = [query.shape[:-2], *((*x.shape[:-3], x.shape[-3] * group) if group > 1 else x.shape[:-2]
                                  for x in (key, value))]
    try:
        lead = np.broadcast_shapes(*folded)
    except ValueError:
        raise ValueError("scaled_dot_product_attention: the leading axes of query, key and value must broadcast, got "
                         f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}; with enable_gqa=True, "
                         "several heads of queries share a head of keys and values") from None
    shared = (*lead[:-1], lead[-1] // group) if group > 1 else lead
    return [ops.broadcast_to(x, (*own, *x.shape[-2:])) if x.shape[:-2] != own else x
            for x, own in zip((query, key, value), (lead, shared, shared), strict=True)]


# --------------------------------------------------------------------------- what is given for each cell (…, T, S)


def checked(mask: Any, bias: Any, dropped: Any, p: float, query: Any, cells: tuple[int, ...],
            operation: str) -> tuple[Any, Any, Any, float]:
    """What was given, where the query is, fitting `cells`; and the mask of dropout, drawn here if it is None."""
    p = check_probability(p, operation)
    mask = None if mask is None else check_mask(mask, query, cells, operation)
    bias = None if bias is None else check_bias(bias, query, cells, operation)
    if dropped is not None:
        dropped = check_mask(dropped, query, cells, f"{operation} (dropped)")
    elif p > 0:
        dropped = random.bernoulli_mask(random.next_key(), cells, 1 - p, query.device)
    return mask, bias, dropped, p


def check_mask(mask: Any, query: Any, shape: tuple[int, ...], operation: str) -> Any:
    """The mask where the query is, having checked that it is boolean and broadcasts to `shape`."""
    raw = mask._data if isinstance(mask, TensorBase) else mask
    if not is_array(raw) or raw.dtype.kind != "b":
        raise TypeError(f"{operation}: the mask must be a boolean array or tensor, True where a query may attend to a "
                        f"key; got {getattr(raw, 'dtype', type(raw).__name__)}: mask != 0 converts ones and zeros, "
                        "mask == 0 what is added to scores, 0 or -inf, and attn_bias= adds any numbers")
    if not broadcasts_to(raw.shape, shape):
        raise ValueError(f"{operation}: the mask has shape {tuple(raw.shape)}, which does not broadcast to "
                         f"(…, queries, keys) = {tuple(shape)}; for a mask (batch, keys) among heads write "
                         "mask[:, None, None, :], for (batch, queries, keys) mask[:, None]")
    if raw.shape[:-1] == shape[:1] != (1,) and len(shape) > 2:  # a row for each query, or for each example?
        refuse_ambiguous(raw, shape, operation)
    device = device_of(query._data if isinstance(query, TensorBase) else query)
    return mask if isinstance(mask, TensorBase) else to_device(mask, device)


def refuse_ambiguous(mask: Any, shape: tuple[int, ...], operation: str) -> None:
    """ValueError for a raw mask (T, S) of a batch of B = T, which may be meant as one of padding, (B, S).

    Not for one whose rows are equal, which means the same both ways, nor for a causal one, nor for one like a window or
    blocks along the diagonal: every query attends to itself, some not to the first keys and some not to the last ones.
    Masks on a GPU are not read.
    """
    def is_causal(later: int) -> Any:
        return (mask == np.tri(mask.shape[0], mask.shape[1], later, dtype=bool)).all()

    def is_along_the_diagonal(later: int) -> Any:  # where padding is at one end of all rows
        itself = np.diagonal(mask, later)
        return len(itself) == len(mask) and itself.all() and not mask[:, 0].all() and not mask[:, -1].all()

    ends = {0, shape[-1] - shape[-2]}  # the first query stands at the first key, or the last query at the last key
    if is_host(mask) and not ((mask == mask[:1]).all() or any(map(is_causal, ends)) or
                              any(is_along_the_diagonal(later) for later in ends if later >= 0)):
        ones = "None, " * (len(shape) - 2)
        raise ValueError(f"{operation}: a mask of shape {tuple(mask.shape)} for a batch of {shape[0]} with as many "
                         "queries may have a row for each example or one for each query; give "
                         f"mask[:, {ones}:] for the former, as padding is, or mask[{ones[:-2]}] for the latter")


def check_bias(bias: Any, query: Any, shape: tuple[int, ...], operation: str) -> Any:
    """The bias where the query is, having checked that it is floating and broadcasts to `shape`."""
    if getattr(getattr(bias, "dtype", None), "kind", "") != "f":
        raise TypeError(f"{operation}: attn_bias must be a floating array or tensor, which is added to the scores; got "
                        f"{getattr(bias, 'dtype', type(bias).__name__)}; what is boolean is an attn_mask")
    if not broadcasts_to(bias.shape, shape):
        raise ValueError(f"{operation}: attn_bias has shape {tuple(bias.shape)}, which does not broadcast to "
                         f"(…, queries, keys) = {tuple(shape)}")
    dtype = query.dtype if query.dtype.kind == "f" else np.float32
    return bias if isinstance(bias, TensorBase) else numbers_on(query.device, bias, dtype, operation)


def causal_mask(query: Any, shape: tuple[int, ...], mask: Any) -> Any:
    """True where a key stands no later than the query, and `mask`, if given, is True: (…, T, S), where the query is."""
    raw = query._data if isinstance(query, TensorBase) else query
    with on_device_of(raw):
        causal = xp(raw).tril(xp(raw).ones(shape[-2:], dtype=bool))
        return causal if mask is None else mask & causal
