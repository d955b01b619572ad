"""An explanation: what it is of, its labels, its size, and what it says of any trace."""

import re

import numpy as np
import pytest

import minigrad as mg

from tests.transformer.explore.test_page import data_of
from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from tests.transformer.traces import made, traced
from transformer import MultiHeadAttention, trace
from transformer.explore import explanation as module
from transformer.explore.data import Snapshot, Tokens
from transformer.explore.explanation import Explanation

CROSS = "decoder.layers.1.cross_attention"
LIVE = {"a": "model"}  # the page takes it as it is


@pytest.fixture
def t():
    return traced(made())[0]


def snapshots_of(t, steps):
    return [Snapshot(step, *({name: tensor_of(t[name]).numpy().astype(np.float32) for name in t} for tensor_of in (
        lambda attention: attention.weights, lambda attention: attention.gradient("scaled")))) for step in steps]


def test_with_a_loss_every_gradient_is_measured():
    t, loss = traced(made(num_encoder_layers=1, num_decoder_layers=1))
    explained = t.explanation(loss)
    with mg.random.fork(4):
        assert explained.loss == pytest.approx(loss().item(), rel=1e-12)  # with the masks of the trace
    for name in explained.names:
        checks = explained.checks(name)
        assert {"X", "WQ", "bK", "dS"[1:], "A", "O"} <= checks.keys()
        assert max(check.error for found in checks.values() for check in found) < 1e-6


def test_on_another_device(device):
    """The same numbers from an array of the host and of a GPU, or its stand-in."""
    with mg.random.fork(2):
        attention = MultiHeadAttention(8, 2).to(device)
    x = mg.Tensor(np.random.default_rng(1).standard_normal((1, 3, 8)), "float32", device)
    with trace(attention) as t:
        (attention(x, x, x) ** 2).sum().backward()
    explained = t.explanation(lambda: (attention(x, x, x) ** 2).sum())
    [check, _] = explained.checks("MultiHeadAttention")["WO"]
    assert check.numeric == pytest.approx(check.analytic, rel=0.05)
    assert "dW_O" in explained.text()


def test_labels(t):
    """Positions if there are no tokens."""
    assert Explanation(t, "").labels(CROSS) == (["0", "1", "2", "3"], ["0", "1", "2", "3", "4"])
    tokens = Tokens([[*"abcde"], [*"fghij"]], [[*"pqrs"], [*"tuvw"]], [[*"qrsx"], [*"uvwy"]])
    explained = Explanation(t, "", tokens=tokens)
    assert explained.labels(CROSS) == (["p → q", "q → r", "r → s", "s → x"], [*"abcde"])
    assert explained.labels("encoder.layers.0.self_attention", 1) == ([*"fghij"],) * 2


def test_a_trace_is_no_page(t, tmp_path):
    """A notebook falls back on the repr."""
    explained = t.explanation()
    assert explained._repr_html_() is None
    with pytest.raises(ValueError, match="the model does not run in a page: it is not the translator"):
        explained.to_html(tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_before_the_backward():
    model = tiny_model()
    with trace(model) as t:
        model.loss(SOURCE, LABELS)
    with pytest.raises(ValueError, match=r"no gradient has reached context of encoder\.layers\.0.*: call backward\(\)"):
        t.explanation().text()
    with trace(model) as nothing:
        pass
    with pytest.raises(ValueError, match="no attention ran inside the trace block"):
        nothing.explanation().text()


def test_what_no_gradient_has_reached_is_not_explained():
    model = tiny_model()
    with trace(model) as t:
        memory = model.encode(SOURCE)
        model.decode(LABELS, memory)
        memory.sum().backward()
    assert t.explanation().names == ["encoder.layers.0.self_attention"]


def test_as_much_history_as_there_is_room_for(t, monkeypatch):
    explained = Explanation(t, "", history=snapshots_of(t, range(10)), live=LIVE)
    whole, bare = explained.page(), Explanation(t, "", live=LIVE).page()
    size = (len(whole.encode()) - len(bare.encode())) / 10
    kept = {}
    for count in (0, 1, 2, 3, 4, 9):
        room = len(bare.encode()) + round((count + 0.9) * size)
        monkeypatch.setattr(module, "LIMIT", room)
        page = explained.page()
        assert len(page.encode()) <= room
        kept[count] = [entry["step"] for entry in data_of(page)["attentions"][-1]["history"]]
    assert kept == {0: [], 1: [9], 2: [0, 9], 3: [0, 4, 9], 4: [0, 3, 6, 9], 9: [0, 1, 2, 3, 4, 6, 7, 8, 9]}
    monkeypatch.setattr(module, "LIMIT", 1000)
    with pytest.raises(ValueError, match="does not run in a page"):
        explained.page()


@pytest.mark.parametrize(("arguments", "error", "named"), [
    ({"attention": "decoder.layers.7"}, ValueError, "decoder.layers.7"), ({"head": 2}, IndexError, "head 2"),
    ({"step": "dZ"}, ValueError, "dZ")])
def test_wrong_use(t, arguments, error, named):
    with pytest.raises(error, match=re.escape(named)):
        Explanation(t, "").text(**arguments)
