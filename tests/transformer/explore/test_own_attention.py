"""Attentions that people write themselves: the core of each is traced, with gradients that differences confirm."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import func, nn
from minigrad import functional as F
from minigrad.engine.watch import watchers

from tests.transformer.tiny import jitter
from transformer import GroupedQueryAttention, MultiHeadAttention, RotaryPositions, trace
from transformer.explore.checks import measure
from transformer.explore.identities import identities
from transformer.explore.traced import INPUTS, PER_HEAD, TAPS

ITEMS, HEADS, LENGTH, WIDTH = 2, 4, 3, 8
CORE = list(PER_HEAD.values())


def rotated(x):
    """Rotary positions (Su et al. 2021, arXiv:2104.09864): (B, H, T, d)."""
    *_, length, width = x.shape
    angles = np.arange(length)[:, None] * 10.0 ** -np.arange(width // 2)
    left, right = x[..., :width // 2], x[..., width // 2:]
    return mg.concatenate([left * np.cos(angles) - right * np.sin(angles),
                           left * np.sin(angles) + right * np.cos(angles)], axis=-1)


class Rotary(MultiHeadAttention):
    """Queries and keys are rotated; the inputs and the output are tapped, as in the class above."""

    def forward(self, query, key, value, mask=None):
        keys = rotated(self.split_heads(self.key(mg.tap("key_input", key))))
        values = self.split_heads(self.value(mg.tap("value_input", value)))
        queries = rotated(self.split_heads(self.query(mg.tap("query_input", query))))
        context = F.scaled_dot_product_attention(queries, keys, values, mask, self.p)
        return mg.tap("output", self.output(self.join_heads(context)))


class Shifted(MultiHeadAttention):
    """The same attention, of other inputs."""

    def forward(self, query, key, value, mask=None):
        return super().forward(query + 1.0, key, value, mask)


class Fused(nn.Module):
    """One map for queries, keys and values, and none after the heads."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        parts = mg.chunk(self.qkv(x), 3, axis=-1)
        q, k, v = (part.reshape((ITEMS, LENGTH, HEADS, -1)).swapaxes(1, 2) for part in parts)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)


class Joined(nn.Module):
    """Heads that the function splits and joins."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return F.multi_head_attention(self.query(x), x, x, HEADS, dropout_p=0.25)


class OneHead(nn.Module):
    """One head, (B, T, d), of one tensor three times, and values of another width."""

    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x[..., :5])


class Grouped(nn.Module):
    """Four heads of queries, two of keys and values; a mask for each head, and dropout."""

    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH // 2)

    def forward(self, x):
        def heads(y, count):
            return y.reshape((ITEMS, LENGTH, count, 2)).swapaxes(1, 2)

        mask = np.random.default_rng(5).random((ITEMS, HEADS, LENGTH, LENGTH)) > 0.3
        queries, keys = heads(self.query(x), HEADS), heads(self.key(x), 2)
        return F.scaled_dot_product_attention(queries, keys, keys * 0.5, mask, 0.25, enable_gqa=True)


class Broadcast(nn.Module):
    """Queries (B, 1, H, T, d) of three axes before the rows, keys of every second, values of all heads."""

    def forward(self, x):
        x = x.reshape((ITEMS, 1, LENGTH, 4, 2)).swapaxes(2, 3)
        keys = mg.concatenate([x, 2.0 * x, -x], axis=1)  # (B, 3, 4, T, 2)
        return F.scaled_dot_product_attention(x, keys[:, :, :1], keys[:1])


class Multi(GroupedQueryAttention):
    """One head of keys and values for all queries."""

    def __init__(self, width, heads):
        super().__init__(width, heads, 1)


class RotaryGrouped(GroupedQueryAttention):
    """Two heads of keys and values, and rotary positions."""

    def __init__(self, width, heads):
        super().__init__(width, heads, 2, rotary=RotaryPositions())


OF_THREE = (MultiHeadAttention, GroupedQueryAttention)  # called with query, key and value


def traced(kind, device=None):
    """A trace of a module with such an attention, and its loss; the attention has the name of its class."""
    with mg.random.fork(3):
        module = kind(WIDTH, HEADS) if issubclass(kind, OF_THREE) else kind()
    jitter(module)
    module.to(device, np.float64)
    x = mg.Tensor(np.random.default_rng(1).standard_normal((ITEMS, LENGTH, WIDTH)), requires_grad=True, device=device)

    def loss():
        out = module(x, x, x) if issubclass(kind, OF_THREE) else module(x)
        return (out ** 3).sum() + (out * x.sum()).mean()

    mg.manual_seed(2)
    with trace(module) as t:
        loss().backward()
    return t, loss


KINDS = [Rotary, Shifted, Fused, Joined, OneHead, Grouped, Broadcast, Multi, RotaryGrouped]
AROUND = {*INPUTS, "concatenated", "output"}
KNOWN = {  # beside the core
    Rotary: AROUND - {"concatenated"}, Shifted: AROUND, Multi: AROUND, RotaryGrouped: AROUND, Joined: {"concatenated"}}


@pytest.mark.parametrize("kind", KINDS)
def test_every_gradient_is_that_of_finite_differences(kind):
    t, loss = traced(kind)
    [name] = t
    assert name == kind.__name__
    attention, rng = t[name], np.random.default_rng(7)
    there = {tap for tap in TAPS if tap in attention}
    assert there == {*CORE, *KNOWN.get(kind, ())}
    for tap in there:
        gradient = attention.gradient(tap).numpy()
        assert gradient.shape == attention.value(tap).shape
        direction = rng.choice([-1.0, 1.0], gradient.shape)
        numeric = t.finite_difference(loss, name, tap, direction)
        assert abs(numeric - (gradient * direction).sum()) <= 1e-7 * abs(gradient).sum(), tap
    checks = measure(t, name, loss)
    assert max(check.error for found in checks.values() for check in found) < 1e-6
    for item in range(attention.batch_size):
        for number in range(attention.num_heads):
            head = attention.head(item, number)
            assert all(fact.holds for fact in identities(head)), identities(head)
            assert head.values.keys() >= head.gradients.keys() >= PER_HEAD.keys()


def test_what_a_subclass_projects_is_known_where_the_numbers_say_so():
    """Rotated queries are not X·W_Q; what calls the class above with other inputs has all its steps."""
    rotary, shifted = traced(Rotary)[0]["Rotary"], traced(Shifted)[0]["Shifted"]
    assert (rotary.projections.keys(), rotary.is_whole, rotary.kind) == ({"V"}, False, "self")
    assert (shifted.projections.keys(), shifted.is_whole, shifted.kind) == (set("QKVO"), True, "cross")
    assert traced(RotaryGrouped)[0]["RotaryGrouped"].projections.keys() == {"V", "O"}
    values, module = rotary.head(1, 2).values, rotary.module
    assert not {"WQ", "WK", "WO", "C"} & values.keys()
    np.testing.assert_array_equal(values["WV"], module.value.weight.numpy()[4:6].T)
    assert rotary.concatenated is None
    for asked in (rotary.value, rotary.gradient):
        with pytest.raises(ValueError, match=r"no 'concatenated' in this attention: Rotary does not .* query_in"):
            asked("concatenated")


def test_the_projections_of_shared_heads():
    """Every head has the columns of the one head of keys."""
    t, _ = traced(Multi)
    attention = t["Multi"]
    assert (attention.projections.keys(), attention.is_self) == (set("QKVO"), True)
    head = attention.head(1, 3)
    np.testing.assert_array_equal(head.values["WK"], attention.module.key.weight.numpy().T)
    np.testing.assert_array_equal(head.gradients["WK"], attention.module.key.weight.grad.numpy().T)


def test_heads_that_share_a_key_have_one_gradient_of_it():
    t, _ = traced(Grouped)
    attention = t["Grouped"]
    assert (attention.queries.shape, attention.keys.shape) == ((2, 4, 3, 2), (2, 2, 3, 2))
    assert (attention.weights.shape, attention.mask.shape, attention.dropped.shape) == ((2, 4, 3, 3),) * 3
    assert [attention.sharing("K", head) for head in range(4)] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    heads = [attention.head(1, number) for number in range(attention.num_heads)]
    for one in heads:
        pair = [heads[other] for other in attention.sharing("K", one.head)]
        np.testing.assert_allclose(sum(head.gradients["R"].T @ head.values["Q"] for head in pair), one.gradients["K"],
                                   rtol=1e-9, atol=1e-13)


# ------------------------------------------------------------------ which attention it is


class Twice(nn.Module):
    """Two calls in one module, around one of another."""

    def __init__(self):
        super().__init__()
        self.inner, self.map = OneHead(), nn.Linear(5, WIDTH)

    def forward(self, x):
        first = F.scaled_dot_product_attention(x, x, x)
        y = self.map(self.inner(first))
        return F.scaled_dot_product_attention(y, x, first)


@pytest.mark.parametrize("checkpointed", [False, True])
def test_calls_are_named_by_the_module_that_calls(checkpointed):
    """Several calls of one module are kept apart, inside a gradient checkpoint too."""
    with mg.random.fork(3):
        model = nn.Sequential(Twice(), Twice()).to(dtype=np.float64)
    x = mg.Tensor(np.random.default_rng(1).standard_normal((ITEMS, LENGTH, WIDTH)), requires_grad=True)

    def loss():
        return ((func.checkpoint(model, x) if checkpointed else model(x)) ** 3).sum()

    with trace(model) as t:
        loss().backward()
    assert t.names == ["0", "0.inner", "1", "1.inner"]
    assert [len(t.calls(name)) for name in t] == [2, 1, 2, 1]
    first, second = t.calls("1")
    assert (first.values.shape, first.is_self, first.kind) == ((2, 1, 3, 8), None, "attention")
    np.testing.assert_array_equal(second.values.numpy(), first.context.numpy())
    assert abs(second.gradient("values").numpy() - first.gradient("context").numpy()).max() > 0.01
    for name in ("1", "1.inner"):
        direction = np.random.default_rng(3).standard_normal(t[name].weights.shape)
        expected = (t[name].gradient("weights").numpy() * direction).sum()
        assert t.finite_difference(loss, name, "weights", direction) == pytest.approx(expected, rel=1e-6)


class Checkpointed(MultiHeadAttention):
    """The attention alone is in a checkpoint: no module runs as it is computed again."""

    def forward(self, query, key, value, mask=None):
        parts = self.query(mg.tap("query_input", query)), self.key(key), self.value(value)
        context = func.checkpoint(lambda *parts: F.multi_head_attention(*parts, self.num_heads, mask), *parts)
        return mg.tap("output", self.output(context))


def test_a_checkpoint_inside_the_module_that_calls():
    t, loss = traced(Checkpointed)
    attention = t["Checkpointed"]
    assert len(t.calls("Checkpointed")) == 1
    assert attention.query_input is not None
    assert attention.projections.keys() == {"Q", "O"}
    for tap in (*CORE, "concatenated", "query_input", "output"):
        gradient = attention.gradient(tap).numpy()
        numeric = t.finite_difference(loss, "Checkpointed", tap, np.sign(gradient))
        assert numeric == pytest.approx(abs(gradient).sum(), rel=1e-6), tap


class Trying(nn.Module):
    """It recovers from an attention that fails, or does not."""

    def __init__(self, recovers=True):
        super().__init__()
        self.inner, self.recovers = MultiHeadAttention(WIDTH, HEADS), recovers

    def forward(self, x):
        try:
            with mg.fused(False):
                return self.inner(x, x, x[..., :1])
        except ValueError:
            if not self.recovers:
                raise
        return self.inner(x, x, x)


def test_finite_differences_put_every_setting_back_after_an_error():
    """The blocks of a call that failed were left after those around it, whose values were then mixed up."""
    module = Trying().to(dtype=np.float64)
    x = mg.Tensor(np.random.default_rng(1).standard_normal((ITEMS, LENGTH, WIDTH)))

    def loss():
        return (module(x) ** 2).sum()

    with trace(module) as t:
        loss().backward()
    direction = np.sign(t["inner"].gradient("weights").numpy())
    expected = abs(t["inner"].gradient("weights").numpy()).sum()
    assert t.finite_difference(loss, "inner", "weights", direction) == pytest.approx(expected, rel=1e-6)
    module.recovers = False
    with pytest.raises(ValueError, match=r"matmul|linear"):
        t.finite_difference(loss, "inner", "weights", direction)
    assert (watchers(), mg.is_grad_enabled()) == ((), True)
    assert "forward" not in vars(module.inner)


def test_returned_weights_in_the_loss_of_a_module_of_ones_own():
    class Returns(nn.Module):
        def forward(self, x):
            return F.scaled_dot_product_attention(x, x, x, return_weights=True)

    module = Returns()
    x = mg.Tensor(np.random.default_rng(1).standard_normal((ITEMS, LENGTH, WIDTH)), requires_grad=True)

    def loss(used=1.0):
        out, weights = module(x)
        return (out ** 2).sum() + used * (weights ** 3).sum() if used else (out ** 2).sum()

    with trace(module) as t:
        loss().backward()
    assert t["Returns"].weights_in_loss
    assert max(check.error for found in measure(t, "Returns", loss).values() for check in found) < 1e-6
    with pytest.raises(ValueError, match=r"^Returns: the loss uses its weights themselves"):
        t.explanation().text()
    with trace(module) as t:
        loss(0).backward()
    assert not t["Returns"].weights_in_loss
    assert "✗" not in t.explanation().text()
