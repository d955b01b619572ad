"""A table of attentions, of the model and of people who write their own, and the formulas of every step."""

import re
from functools import partial
from typing import NamedTuple

import numpy as np

import minigrad as mg
from minigrad import func, nn
from minigrad import functional as F
from minigrad.functional.attention import join_heads, split_heads

from tests.transformer.tiny import jitter
from tests.transformer.traces import KINDS, NAMES, made
from tests.transformer.traces import traced as traced_model
from transformer import GroupedQueryAttention, MultiHeadAttention, RotaryPositions, trace
from transformer.explore.traced import INPUTS

ITEMS, HEADS, LENGTH, WIDTH = 2, 4, 3, 8
BIAS = mg.Tensor(np.random.default_rng(6).standard_normal((HEADS, LENGTH, LENGTH)), requires_grad=True)
MASK = np.random.default_rng(5).random((ITEMS, HEADS, LENGTH, LENGTH)) > 0.3


def array(seed, length=LENGTH):
    return mg.Tensor(np.random.default_rng(seed).standard_normal((ITEMS, length, WIDTH)), requires_grad=True)


def heads_of(x, count):
    return x.reshape((ITEMS, LENGTH, count, -1)).swapaxes(1, 2)


class Gated(MultiHeadAttention):
    """What it taps as "concatenated" is more than the heads side by side."""

    def forward(self, query, key, value, mask=None):
        keys, values = self.key(mg.tap("key_input", key)), self.value(mg.tap("value_input", value))
        context = F.scaled_dot_product_attention(*[split_heads(x, self.num_heads) for x in (query, keys, values)], mask)
        return mg.tap("output", self.output(mg.tap("concatenated", join_heads(context) * query)))


class Checkpointed(MultiHeadAttention):
    """The attention alone is in a checkpoint: no module runs as it is computed again."""

    def forward(self, query, key, value, mask=None):
        parts = self.query(mg.tap("query_input", query)), self.key(key), self.value(value)
        context = func.checkpoint(lambda *parts: F.multi_head_attention(*parts, self.num_heads, mask), *parts)
        return mg.tap("output", self.output(context))


class Of(nn.Module):
    """A module that computes a function of two maps of its input."""

    def __init__(self, function, keys=WIDTH):
        super().__init__()
        self.query, self.key, self.function = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, keys), function

    def forward(self, x):
        return self.function(self.query(x), self.key(x))


def scaled(q, k):
    q, k = (heads_of(x, HEADS) for x in (q, k))
    return F.scaled_dot_product_attention(q, k, k, is_causal=True, scale=0.3)


def one_head(q, k):
    """(B, T, d), and values of another width."""
    return F.scaled_dot_product_attention(q, k, k[..., :5])


def grouped(q, k):
    """Two heads of keys and values; a mask for each head, and dropout."""
    q, k = heads_of(q, HEADS), heads_of(k, 2)
    return F.scaled_dot_product_attention(q, k, k * 0.5, MASK, 0.25, enable_gqa=True)


def broadcast(q, k):
    """Queries (B, 1, H, T, d) of three axes before the rows, keys of every second, values of all heads."""
    q, k = (heads_of(x, 4)[:, None] for x in (q, k))
    keys = mg.concatenate([k, 2.0 * k, -k], axis=1)  # (B, 3, 4, T, 2)
    return F.scaled_dot_product_attention(q, keys[:, :, :1], keys[:1])


def biased(q, k, mask=None):
    return F.scaled_dot_product_attention(*(heads_of(x, HEADS) for x in (q, k, k)), mask, attn_bias=BIAS)


class Case(NamedTuple):
    """What runs; and of it: kind, taps beside the core, letters of its projections, heads that share one of keys."""

    module: object
    loss: object
    kind: str = "attention"
    known: set = frozenset()
    letters: str = ""
    group: int = 1


def case(module, *given, weights=None, frozen=(), hook=None, **facts):
    """The loss is one of the output, and of the weights that come with it, if they count for something."""
    jitter(module)
    module.to(dtype=np.float64)
    parameters = dict(module.named_parameters())
    for name in frozen:
        parameters[name].requires_grad = False
    if hook:
        module.register_full_backward_hook(hook)

    def loss():
        out, extra = (module(*given), 0.0) if weights is None else module(*given, return_weights=True)
        total = (out ** 3).sum() + (out * given[0].sum()).mean()
        return total + weights * (extra ** 3).sum() if weights else total

    return Case(module, loss, **facts)


AROUND = {*INPUTS, "concatenated", "output"}
X, Y, Z = array(1), array(2, 4), array(3, 4)
SELF = {"kind": "self", "known": AROUND, "letters": "QKVO"}
CROSS = SELF | {"kind": "cross"}


def multi_head(*given, dropout=0.0, bias=True, **options):
    return case(MultiHeadAttention(WIDTH, HEADS, dropout, bias), *given, **options)


ATTENTIONS = {
    "self": lambda: multi_head(X, X, X, dropout=0.4, hook=lambda *_: None, **SELF),
    "no bias": lambda: multi_head(X, Y, Y, bias=False, **CROSS),
    "three inputs": lambda: multi_head(X, Y, Z, **CROSS),
    "query is key": lambda: multi_head(Y, Y, Z, **SELF),
    "weights in the loss": lambda: multi_head(X, X, X, dropout=0.4, weights=1.0, **SELF),
    "weights beside the loss": lambda: multi_head(X, X, X, weights=0.0, **SELF),
    "frozen": lambda: multi_head(X, X, X, frozen=["query.weight", "output.bias"], **SELF),
    "gated": lambda: case(Gated(WIDTH, HEADS), X, X, X, known=AROUND - {"query_input"}, letters="KVO"),
    "in a checkpoint": lambda: case(Checkpointed(WIDTH, HEADS), X, X, X, known=AROUND - {"key_input", "value_input"},
                                    letters="QO"),
    "scaled": lambda: case(Of(scaled), X),
    "one head": lambda: case(Of(one_head), X),
    "grouped": lambda: case(Of(grouped, keys=4), X, group=2),
    "broadcast": lambda: case(Of(broadcast), X),
    "biased": lambda: case(Of(biased), X),
    "biased and masked": lambda: case(Of(partial(biased, mask=MASK)), X),
    "rotary": lambda: case(GroupedQueryAttention(WIDTH, HEADS, 2, rotary=RotaryPositions()), X, X, X, group=2,
                           kind="self", known=AROUND, letters="VO"),
}
OF_MODELS = [(norm, name) for norm in ("pre", "post") for name in KINDS]


def traced(name):
    """The case, its trace after a backward, the name of its attention there; of a model, (norm, name)."""
    if name in ATTENTIONS:
        with mg.random.fork(3):
            found = ATTENTIONS[name]()
        mg.manual_seed(2)
        with trace(found.module) as t:
            found.loss().backward()
        [module] = t
        return found, t, module
    norm, module = name
    t, loss = traced_model(made(norm=norm, dropout=0.3 if norm == "pre" else 0.0))
    return Case(t.model, loss, NAMES[module], AROUND, "QKVO"), t, module


# ------------------------------------------------------------------ the formulas

PYTHON = [(", Dᵢ.*", ""), ("S̄", "Sm"), ("A′", "Ad"), ("([Wb])_", r"\1"), ("ᵀ", ".T"), (r"kept/.*", "kept"),
          ("√d_k", "root"), ("[∘·]", "*"), ("−", "-"), ("∞", "inf"), ("the sum of the rows of (.*)", r"\1.sum(axis=0)"),
          ("(.*) where the mask allows, (.*) elsewhere", r"where(mask, \1, \2)"), (r"(\w) (?=\w)", r"\1 @ ")]


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True, initial=-1e300))
    return e / e.sum(axis=-1, keepdims=True).clip(1e-300)


class Formulas:
    """What the formulas that are printed give, evaluated with the matrices of a traced attention."""

    def __init__(self, attention):
        self.attention = attention
        self.of = [[self.names(item, head) for head in range(attention.num_heads)]
                   for item in range(len(attention.context))]

    def names(self, item, number):
        a, head = self.attention, self.attention.head(item, number)
        return head.values | {f"d{name}": gradient for name, gradient in head.gradients.items()} | {
            "mask": True if a.mask is None else a.mask[item, number], "B": BIAS.numpy()[number],
            "kept": 1.0 if a.dropped is None else a.dropped[item, number] / (1 - a.p),
            "D": (head.values["A"] * head.gradients["A"]).sum(axis=-1, keepdims=True),
            "root": np.sqrt(head.values["Q"].shape[-1]), "where": np.where, "inf": np.inf, "softmax": softmax}

    def expected(self, formula, item, head):
        """Of one head: weights have one gradient for all items, and heads that share keys one K and one V."""
        symbol, text = formula.split(" = ", 1)
        group, heads = self.attention.group, self.of[item]
        if text.endswith("side by side"):
            return np.hstack([of["O"] for of in heads])
        if text == "the head's columns of dC":
            return np.hsplit(heads[head]["dC"], len(heads))[head]
        over, text = [heads[head]], text.removeprefix("Σ heads that share it ")
        if symbol[:3] in ("dW_", "db_"):
            over = [of[head] for of in self.of]
        elif "share" in formula:
            over = heads[head - head % group:][:group]
        for pattern, new in PYTHON:
            text = re.sub(pattern, new, text)
        terms = [(text, over)]
        if text.startswith("Σ"):
            terms = [(term, heads[::1 if "Q" in term else group]) for term in re.findall(r"d\w @ W\w\.T", text)]
        return sum(eval(term, of) for term, over in terms for of in over)  # noqa: S307
