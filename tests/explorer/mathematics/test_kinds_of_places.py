"""What the page says of every kind of place: the sum behind each cell, and facts that hold."""

from typing import Any

import pytest

from tests.explorer.mathematics.whole_model import CONFIGURATIONS, as_data, model_of, sentences

ASKING = """
([{config, parameters}, pairs, item], read) => {
  const matrices = new Map(Object.entries(decodePage(parameters)).map(([name, array]) => [name, array.matrix()]));
  const run = new BatchRun(matrices, config, pairs.map(([source, target]) => ({source, target})), {}, item);
  return run.order.map((path) => {
    const result = run.result(path);
    return {path, kind: result.kind, found: (%s)(result)};
  });
}"""


def ask(page: Any, name: str, function: str, item: int = 0) -> list[dict[str, Any]]:
    """What a JavaScript function makes of the Result of every place of a model."""
    model = model_of(name)
    return page.evaluate(ASKING % function, [as_data(model), sentences(), item])


# By symbol, how far the worst sum is from its cell, in proportion to the largest cell or term: of a gradient that is 0
# both have the rounding errors of terms that cancel.
SUMS = """(result) => Object.assign({}, ...bySymbol(result, (symbol, head) => {
  const matrix = tensorAt(result, head, symbol);
  let [worst, size] = [0, 0];
  for (let i = 0; i < matrix.rows; i++) {
    for (let j = 0; j < matrix.cols; j++) {
      const {terms, sum} = explainCell(result, head, symbol, i, j);
      const cell = matrix.at(i, j);
      worst = Math.max(worst, sum === cell ? 0 : Math.abs(sum - cell)); // −∞ is −∞
      const sizes = [Number.isFinite(cell) ? cell : 0, ...terms.map(({product}) => product)].map(Math.abs);
      size = Math.max(size, ...sizes);
    }
  }
  return worst / (size || 1);
}))"""


@pytest.mark.parametrize("item", [0, 1])
@pytest.mark.parametrize("name", list(CONFIGURATIONS))
def test_the_sum_behind_every_cell_of_every_tensor_is_the_cell(page, name, item):
    for place in ask(page, name, SUMS, item):
        for symbol, error in place["found"].items():
            assert error < 1e-12, (place["path"], symbol)
    for place in ask(page, name, "faultOfSums", item):
        assert place["found"] == 0, place["path"]


@pytest.mark.parametrize("name", list(CONFIGURATIONS))
def test_facts_hold_in_every_place(page, name):
    kinds = set()
    for item in (0, 1):
        for place in ask(page, name, "(result) => result.heads.flatMap((_, head) => identities(result, head))", item):
            for fact in place["found"]:
                assert fact["holds"], (place["path"], fact)
                kinds.add(place["kind"])
    assert kinds >= {"norm", "embedding", "output"} - ({"norm"} if "no decoder" in name else set())


# A gradient of a place made wrong in one cell, and the facts that then fail.
WRONG = [
    ("pre", "norm", "dX", {"mean", "length"}),
    ("pre", "residual", "dX", {"around"}),
    ("pre", "residual", "dU", {"around"}),
    ("pre", "feed_forward", "dH", {"off"}),
    ("pre", "embedding", "dW", {"absent", "collected"}),
    ("pre", "output", "dZ", {"logits", "sign"}),
]


@pytest.mark.parametrize(("name", "kind", "symbol", "fails"), WRONG)
def test_facts_fail_where_a_gradient_is_wrong(page, name, kind, symbol, fails):
    spoilt = f"""(result) => {{
      if (result.kind !== "{kind}") return [];
      const {{rows, cols, data}} = result.shared.{symbol};
      result.shared.{symbol} = new Matrix(rows, cols, data.map((x) => (x === 0 ? 1e-6 : -x) + 1e-6));
      return identities(result, 0).filter(({{holds}}) => !holds).map(({{key}}) => key);
    }}"""
    for place in ask(page, name, spoilt):
        if place["kind"] == kind:
            assert set(place["found"]) == fails, place["path"]
