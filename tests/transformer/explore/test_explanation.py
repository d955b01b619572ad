"""An explanation: which attentions a page has room for, its labels, its size, and a page from any trace."""

import re

import numpy as np
import pytest

import minigrad as mg

from tests.transformer.explore.test_data import decoded
from tests.transformer.explore.test_page import data_of
from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from tests.transformer.traces import NAMES, made, traced
from transformer import MultiHeadAttention, Transformer, TransformerConfig, trace
from transformer.explore.data import Snapshot
from transformer.explore.explanation import Explanation, tokens_of
from transformer.training.recipes import RECIPES

CROSS = "decoder.layers.1.cross_attention"
FEW = [["a", "b", "c", "d", "e"], ["x", "</script>", "z"]]


@pytest.fixture
def t():
    return traced(made())[0]


def read(path):
    return data_of(path.read_text(encoding="utf-8"))


def snapshots_of(t, steps):
    return [Snapshot(step, *({name: tensor_of(t[name]).numpy().astype(np.float32) for name in t} for tensor_of in (
        lambda attention: attention.weights, lambda attention: attention.gradient("scaled")))) for step in steps]


def recipe_trace(length, **changes):
    """A model as the demo trains it, and sentences of so many tokens."""
    recipe = RECIPES["dates"]
    with mg.random.fork(3):
        model = Transformer(getattr(TransformerConfig, recipe.preset)(90, 20, **(recipe.model | changes))).eval()
    source, labels = (np.random.default_rng(seed).integers(3, 20, (1, length)) for seed in (1, 2))
    with trace(model) as t:
        model.loss(source, labels).backward()
    return t


def test_to_html_of_a_trace(t, tmp_path):
    """Every attention, in the order in which they ran; without a loss nothing is measured, and none is said."""
    assert t.to_html(tmp_path / "page.html", FEW, [["<s>", "p", "q", "r"], ["<s>", "s"]]) == []
    data = read(tmp_path / "page.html")
    assert [entry["name"] for entry in data["attentions"]] == list(NAMES)
    assert data["tokens"] == {
        "source": [["a", "b", "c", "d", "e"], ["x", "</script>", "z", "<pad>", "<pad>"]],
        "target": [["<s>", "p", "q", "r"], ["<s>", "s", "<pad>", "<pad>"]],
        "next": [["p", "q", "r", ""], ["s", "<pad>", "<pad>", ""]]}
    assert (data["loss"], data["precision"], data["leftOut"]) == (None, "float64", [])
    assert all(entry["checks"] == {} and entry["history"] == [] for entry in data["attentions"])


def test_with_a_loss_every_gradient_is_measured(tmp_path):
    t, loss = traced(made(num_encoder_layers=1, num_decoder_layers=1))
    t.to_html(tmp_path / "page.html", loss=loss)
    data = read(tmp_path / "page.html")
    with mg.random.fork(4):
        assert data["loss"] == pytest.approx(loss().item(), rel=1e-12)  # with the masks of the trace
        assert data["lossName"] == "the loss of the block that was traced"  # which may be any
    for entry in data["attentions"]:
        assert {"X", "WQ", "bK", "dS"[1:], "A", "O"} <= entry["checks"].keys()
        assert max(check["error"] for found in entry["checks"].values() for check in found) < 1e-6


def test_on_another_device(device, tmp_path):
    """The same page from an array of the host and of a GPU, or its stand-in."""
    with mg.random.fork(2):
        attention = MultiHeadAttention(8, 2).to(device)
    x = mg.Tensor(np.random.default_rng(1).standard_normal((1, 3, 8)), "float32", device)
    with trace(attention) as t:
        (attention(x, x, x) ** 2).sum().backward()
    t.to_html(tmp_path / "page.html", ["a", "b", "c"], loss=lambda: (attention(x, x, x) ** 2).sum())
    [entry] = decoded(read(tmp_path / "page.html"))["attentions"]
    np.testing.assert_array_equal(entry["x"], x.numpy())
    assert entry["checks"]["WO"][0]["numeric"] == pytest.approx(entry["checks"]["WO"][0]["analytic"], rel=0.05)


def test_labels_are_positions_if_there_are_none(t):
    tokens = tokens_of(t)
    assert tokens.source == [["0", "1", "2", "3", "4"]] * 2
    assert tokens.target == [["0", "1", "2", "3"]] * 2
    assert tokens.following == [["", "", "", ""]] * 2
    assert Explanation(t, tokens, "").labels(CROSS) == (tokens.target[0], tokens.source[0])
    assert Explanation(t, tokens, "").labels("encoder.layers.0.self_attention", 1) == (tokens.source[1],) * 2


@pytest.mark.parametrize("source", [["a", "b"], [["a"] * 6, ["b"]]])
def test_labels_that_do_not_fit(t, source, tmp_path):
    with pytest.raises(ValueError, match="source_tokens"):
        t.to_html(tmp_path / "page.html", source)


def test_before_the_backward(tmp_path):
    model = tiny_model()
    with trace(model) as t:
        model.loss(SOURCE, LABELS)
    with pytest.raises(ValueError, match=r"no gradient has reached output of encoder\.layers\.0.*: call backward\(\)"):
        t.to_html(tmp_path / "page.html")
    assert t._repr_html_() is None  # a notebook falls back on the repr
    with trace(model) as nothing:
        pass
    with pytest.raises(ValueError, match="no attention ran inside the trace block"):
        nothing.to_html(tmp_path / "page.html")
    assert nothing._repr_html_() is None
    assert list(tmp_path.iterdir()) == []


def test_what_no_gradient_has_reached_is_not_in_the_page(tmp_path):
    model = tiny_model()
    with trace(model) as t:
        memory = model.encode(SOURCE)
        model.decode(LABELS, memory)
        memory.sum().backward()
    assert t.to_html(tmp_path / "page.html") == []
    [entry] = read(tmp_path / "page.html")["attentions"]
    assert entry["name"] == "encoder.layers.0.self_attention"


def test_to_html_of_chosen_attentions(t, tmp_path):
    left_out = t.to_html(tmp_path / "page.html", attentions=["decoder.layers.1", "encoder.layers.0.self_attention"])
    assert [entry["name"] for entry in read(tmp_path / "page.html")["attentions"]] == [
        "encoder.layers.0.self_attention", "decoder.layers.1.self_attention", CROSS]
    assert left_out == [name for name in NAMES if "encoder.layers.1" in name or "decoder.layers.0" in name]
    with pytest.raises(ValueError, match=r"there is no attention 'encoder.layers.7'; there are encoder.layers.0.self_"):
        t.to_html(tmp_path / "page.html", attentions=["encoder.layers.7"])


# --------------------------------------------------------------------------- size


def test_as_much_history_as_there_is_room_for():
    t = recipe_trace(24)
    explained = Explanation(t, tokens_of(t), "", history=snapshots_of(t, range(10)))
    bare = len(Explanation(t, explained.tokens, "").page().html.encode())
    kept = {}
    for count in (0, 1, 2, 3, 4, 9):
        room = bare + count * explained._snapshot_size(explained.names) + 100
        page = explained.page(explained.names, limit=room)
        assert len(page.html.encode()) <= room
        kept[count] = [entry["step"] for entry in data_of(page.html)["attentions"][-1]["history"]]
    assert kept == {0: [], 1: [9], 2: [0, 9], 3: [0, 4, 9], 4: [0, 3, 6, 9], 9: [0, 1, 2, 3, 4, 6, 7, 8, 9]}


def test_a_large_model_shows_what_fits():
    """The nearest to the loss, and at least one."""
    t = recipe_trace(6)
    explained = Explanation(t, tokens_of(t), "")
    everything = explained.page()
    assert everything.left_out == []
    size = len(everything.html.encode())
    some = explained.page(limit=size * 2 // 3)
    order = explained.preferred()
    assert 1 < len(some.shown) < len(t)
    assert set(some.shown) == set(order[:len(some.shown)])
    assert set(some.left_out) == set(order[len(some.shown):])
    assert len(some.html.encode()) <= size * 2 // 3
    data = data_of(some.html)
    assert [entry["name"] for entry in data["attentions"]] == some.shown  # in the order in which they ran
    assert data["leftOut"] == some.left_out
    assert explained.page(limit=1).shown == [CROSS]


# --------------------------------------------------------------------------- text


@pytest.mark.parametrize(("arguments", "error", "named"), [
    ({"attention": "decoder.layers.7"}, ValueError, "decoder.layers.7"), ({"head": 2}, IndexError, "head 2"),
    ({"step": "dZ"}, ValueError, "dZ")])
def test_wrong_use(t, arguments, error, named):
    with pytest.raises(error, match=re.escape(named)):
        Explanation(t, tokens_of(t), "").text(**arguments)
