"""Attention and grouped-query attention by definition; their gradients are in test_models.py."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor
from minigrad import functional as F
from minigrad.functional.attention import join_heads, split_heads

from tests.transformer.tiny import jitter
from transformer import GroupedQueryAttention, MultiHeadAttention, RotaryPositions, causal_mask, padding_mask

BATCH, QUERIES, KEYS, FEATURES, HEADS = 2, 3, 5, 12, 4
# The second sentence has 3 real keys; the queries are the last of the keys.
MASK = padding_mask((np.arange(KEYS) < np.array([[5], [3]])).astype(int)) & causal_mask(QUERIES, KEYS)
PARTS = "query", "key", "value", "output"
OPTIONS = [
    {"num_kv_heads": 1, "bias": False},
    {"num_kv_heads": 2, "head_dim": 4, "bias": ("query", "value", "output")},
    {"num_kv_heads": 2, "head_dim": 6, "rotary": RotaryPositions()},
    {"head_dim": 8, "rotary": RotaryPositions(100.0, "interleaved", 4)},
]


def made(device="cpu", dtype=np.float64, **options):
    with minigrad.random.fork(1):
        module = GroupedQueryAttention(FEATURES, HEADS, **options)
    jitter(module)
    return module.to(device, dtype)


def inputs(device="cpu"):
    rng = np.random.default_rng(2)
    return [Tensor(rng.standard_normal((BATCH, length, FEATURES)), device=device)
            for length in (QUERIES, KEYS, KEYS)]


def by_definition(module, query, key, value):
    """With a copy of the shared keys and values for each head of queries."""
    q, k, v = (split_heads(linear(x), linear.weight.shape[0] // module.head_dim) for linear, x in (
        (module.query, query), (module.key, key), (module.value, value)))
    if module.rotary is not None:
        q, k = module.rotary(q, KEYS - QUERIES), module.rotary(k, 0)
    k, v = (x[:, np.arange(HEADS) // (HEADS // module.num_kv_heads)] for x in (k, v))
    return module.output(join_heads(F.scaled_dot_product_attention(q, k, v, MASK)))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_definition(options, device):
    module = made(**options)
    biased = {*PARTS} if options.get("bias", True) is True else {*(options["bias"] or ())}
    assert {name for name in PARTS if getattr(module, name).bias is not None} == biased
    expected = by_definition(module, *inputs()).numpy()
    np.testing.assert_allclose(module.to(device)(*inputs(device), MASK).numpy(), expected, rtol=0, atol=1e-12)


def test_weights_are_dropped_as_in_multi_head_attention():
    plain, ours = MultiHeadAttention(FEATURES, HEADS, 0.4).to(dtype=np.float64), made(dropout=0.4)
    plain.load_state_dict(ours.state_dict())
    for training in (True, False):
        results = []
        for module in (plain, ours):
            with minigrad.random.fork(3):
                results.append(module.train(training)(*inputs(), MASK).numpy())
        np.testing.assert_allclose(*results, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: MultiHeadAttention(8, 3), r"d_model \(8\).*num_heads \(3\)"),
    (lambda: GroupedQueryAttention(12, 4, 3), r"num_heads \(4\) must be a multiple of num_kv_heads \(3\)"),
    (lambda: GroupedQueryAttention(12, 5), r"d_model \(12\) must be a multiple of num_heads \(5\), or head_dim"),
    (lambda: GroupedQueryAttention(12, 4, bias=("keys",)), r"bias must be True, False or names .*, got \('keys',\)"),
    (lambda: made(head_dim=6, rotary=RotaryPositions())(*(inputs()[place] for place in (1, 0, 0))),
     "5 queries cannot be the last of 3 keys"),
])
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
