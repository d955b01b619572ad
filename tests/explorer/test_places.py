"""Every place of a live page can be entered: each of its steps has its sum, each panel its content."""

import pytest

from tests.explorer.panels import live_explanation
from tests.transformer.tiny import tiny_model

# By place: what is wrong where one walks along its tiles, in the forward and the backward pass, and along its panels.
WALK = """() => page.places.map(({path}) => {
  const wrong = [];
  setState({place: path});
  const view = currentView();
  for (const symbol of [...forwardSymbols(view), ...gradientSymbols(view)]) {
    setState({symbol, cell: {row: 0, col: 0}});
    const sum = Number(document.querySelector("#stage .worked .total").dataset.value);
    const cell = explorer.value(symbol, 0, 0);
    const size = Math.max(...explorer.matrix(symbol).flat().filter(Number.isFinite).map(Math.abs), 1e-3);
    if (sum !== cell && !(Math.abs(sum - cell) <= 1e-12 * size)) wrong.push([symbol, sum, cell]);
    if (explorer.state.symbol !== symbol) wrong.push([symbol, "is not shown"]);
  }
  for (const {id} of panelsOf(view)) {
    if (id === "checks") continue; // it takes long; what it says is tested without a document
    setState({panel: id});
    if (document.querySelector("#panel").innerText.trim() === "") wrong.push([id, "is empty"]);
    for (const fact of document.querySelectorAll("#panel [data-holds=false]")) wrong.push([id, fact.textContent]);
  }
  return [path, wrong];
})"""


@pytest.mark.parametrize("changes", [
    pytest.param({"norm": "pre"}, id="pre", marks=pytest.mark.slow),  # as in the other tests of a live page
    pytest.param({"norm": "post", "activation": "gelu", "tie_output": True, "norm_bias": False, "positions": "learned"},
                 id="post")])
def test_every_step_and_every_panel_of_every_place(tmp_path, open_page, changes):
    live_explanation(tiny_model(**changes)).to_html(tmp_path / "page.html")
    page = open_page(tmp_path / "page.html")
    walked = page.evaluate(WALK)
    ends = {path.rpartition(".")[2] for path, _ in walked}
    assert ends >= {"embedding", "norm", "feed_forward", "cross_attention", "output"}
    for path, wrong in walked:
        assert wrong == [], path
