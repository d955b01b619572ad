"""What the tests ask of the page's mathematics, and how."""

from typing import Any

import numpy as np

from tests.explorer.mathematics.one_attention import cases

CASES = cases()
NAMES = list(CASES)
BREAKAGES = ["batch", "rowsum", "transpose", "mask"]
EDITS = [
    {"symbol": "Q", "head": 1, "row": 2, "col": 0, "value": 1.75},
    {"symbol": "K", "head": 0, "row": 1, "col": 2, "value": -2.5},
    {"symbol": "V", "head": 1, "row": 0, "col": 1, "value": 3.0},
    {"symbol": "G", "head": 0, "row": 1, "col": 4, "value": -1.25},
]

# What the tests ask of the scripts, beside what they offer: whole matrices at once.
ASKING = """
const bySymbol = (result, make) => result.heads.map((_, head) => Object.fromEntries(
  Object.keys(TENSORS).filter((symbol) => tensorAt(result, head, symbol) !== null)
    .map((symbol) => [symbol, make(symbol, head)])));
const allTensors = (result) => bySymbol(result, (symbol, head) => tensorAt(result, head, symbol).toNested());
const allCells = (result, read) => bySymbol(result, (symbol, head) => {
  const {rows, cols} = tensorAt(result, head, symbol);
  return makeMatrix(rows, cols, (i, j) => read(explainCell(result, head, symbol, i, j), head)).toNested();
});
"""


def ask(page: Any, name: str, expression: str, item: int = 0, **options: Any) -> Any:
    """What a JavaScript expression of `result`, `data` (the page's), `index`, `item` and `options` comes to."""
    function = f"""([index, item, options]) => {{
      const data = globalThis.page;
      const result = compute(data, index, item, options);
      return {expression};
    }}"""
    return page.evaluate(function, [NAMES.index(name), item, options])


def assert_same(found: Any, expected: np.ndarray, what: str, tolerance: float = 1e-9) -> None:
    """Two matrices, equal up to `tolerance` in proportion to the largest entry."""
    found = np.array(found, dtype=float)
    assert found.shape == expected.shape, what
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    # Of a gradient that is 0 both have the rounding errors of terms near 1.
    np.testing.assert_allclose(found, expected, rtol=0, atol=max(tolerance * largest, 1e-13), err_msg=what)
