"""The page of attentions that people write themselves: the steps that there are, with the engine's numbers."""

import numpy as np
import pytest

from minigrad import Tensor, nn

from tests.transformer.explore.test_own_attention import Grouped, Joined, OneHead, Rotary, RotaryGrouped, traced
from transformer import trace
from transformer.explore.steps import matrices, matrix, steps_of

HEAD = {"item": 1, "head": 2}
CELLS = """([symbol, rows, cols]) => Array.from({length: rows}, (_, i) => Array.from({length: cols}, (__, j) =>
  explorer.explainCell(symbol, i, j).sum))"""


def show(page, **changes):
    page.evaluate("(changes) => explorer.setState(changes)", changes)


def shown(page, selector, expression):
    return page.eval_on_selector_all(selector, f"all => all.map((one) => {expression})")


@pytest.mark.parametrize("kind", [Rotary, Joined, OneHead, Grouped, RotaryGrouped])
def test_the_page_of_a_core(open_page, tmp_path, kind):
    """Its tiles, all numbers of one head, the sum of every cell, and the checks: right as it is, wrong when broken."""
    t, loss = traced(kind)
    t.to_html(tmp_path / "page.html", loss=loss)
    page, attention = open_page(tmp_path / "page.html"), t[kind.__name__]
    where = HEAD if attention.num_heads > 1 else {"item": 1, "head": 0}
    show(page, **where)
    steps, values = steps_of(attention), matrices(attention.head(**where))
    assert set(shown(page, ".tile", "one.dataset.symbol")) == steps.keys()
    for symbol in steps:
        show(page, symbol=symbol, cell={"row": 0, "col": 0})
        expected = matrix(values, symbol)
        for found in (page.evaluate("(symbol) => explorer.matrix(symbol)", symbol),
                      page.evaluate(CELLS, [symbol, *expected.shape])):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13, err_msg=symbol)
    panels = ["softmax", "checks", "heads", "history"]
    for panel, title in zip(panels, shown(page, ".tab", "one.innerText"), strict=True):
        show(page, panel=panel)
        assert page.locator("[role=tab][aria-selected=true]").inner_text() == title
    assert all(check["ok"] for check in page.evaluate("explorer.checks()"))
    assert all(fact["holds"] for fact in page.evaluate("explorer.identities()"))
    assert f"{len(steps) // 2} gradients checked by finite differences" in page.locator(".verdict").inner_text()
    show(page, broken="transpose")
    assert [check["symbol"] for check in page.evaluate("explorer.checks()") if not check["ok"]] == ["K"]
    show(page, broken=None, symbol="K", cell={"row": 1, "col": 1})
    nudged = page.evaluate("explorer.nudge({symbol: 'K', row: 1, col: 1}, 1e-4)")
    assert nudged["gradient"] == pytest.approx(values["dK"][1, 1], rel=1e-9)
    assert nudged["difference"] == pytest.approx(nudged["gradient"], rel=1e-5)
    path = page.evaluate("explorer.page.places[explorer.state.place].path")
    show(page, edit={"path": path, "symbol": "K", "head": where["head"], "row": 1, "col": 1, "value": 2.5})
    for head in attention.sharing("K", where["head"]):
        show(page, head=head)
        assert page.evaluate("explorer.value('K', 1, 1)") == pytest.approx(2.5)
    assert all(check["ok"] for check in page.evaluate("explorer.checks()"))


class Pair(nn.Module):
    """Two attentions of one kind in one layer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = OneHead(), nn.Sequential(OneHead())

    def forward(self, x):
        return (self.first(x) ** 2).sum() + (self.second(2 * x) ** 3).sum()


def test_attentions_that_kind_and_layer_do_not_tell_apart_are_chosen_by_name(open_page, tmp_path):
    model, x = Pair(), Tensor(np.random.default_rng(1).standard_normal((1, 3, 8)))
    with trace(model) as t:
        model(x).backward()
    t.to_html(tmp_path / "page.html")
    page = open_page(tmp_path / "page.html")
    assert shown(page, "[name=attention] option", "one.innerText") == ["first", "second.0"]
    for name in t:
        page.locator("[name=attention]").select_option(label=name)
        np.testing.assert_allclose(page.evaluate("explorer.matrix('A')"), t[name].weights.numpy()[0, 0], rtol=1e-9)
