"""What the tests of the application do with the page, and what they read from it."""

from typing import Any

import numpy as np

SELF, CROSS = "decoder.layers.0.self_attention", "decoder.layers.0.cross_attention"
TOLERANCE = 1e-9  # in proportion to the tensor's largest entry
# In the order of their steps.
FORWARD = ["X", "WQ", "bQ", "WK", "bK", "WV", "bV", "Q", "K", "V", "R", "S", "Sm", "A", "O", "C", "WO", "bO", "Y"]
BACKWARD = ["dY", "dbO", "dWO", "dC", "dO", "dV", "dA", "dSm", "dS", "dR", "dQ", "dK",
            "dbQ", "dbK", "dbV", "dWQ", "dWK", "dWV", "dX"]


def choose(page: Any, **changes: Any) -> None:
    """Change the state of the page."""
    page.evaluate("(changes) => explorer.setState(changes)", changes)


def state(page: Any, field: str) -> Any:
    """A field of the page's state; of the place, its path."""
    if field == "place":
        return page.evaluate("explorer.page.places[explorer.state.place].path")
    return page.evaluate("(field) => explorer.state[field]", field)


def matrix(page: Any, symbol: str) -> np.ndarray:
    """The page's matrix for a symbol, in its present selection."""
    return np.array(page.evaluate("(symbol) => explorer.matrix(symbol)", symbol), dtype=float)


def of_engine(page: Any, engine: Any, symbol: str) -> np.ndarray:
    """The engine's matrix for a symbol, in the page's present selection."""
    name = page.evaluate("explorer.page.places[explorer.state.place].path")
    head = engine[name].head(state(page, "item"), state(page, "head"))
    matrices = head.gradients if symbol.startswith("d") else head.values
    return np.atleast_2d(np.asarray(matrices[symbol.removeprefix("d")]))


def symbols_of_tiles(page: Any, which: str = ".tile") -> list[str]:
    return page.evaluate("(which) => [...document.querySelectorAll(which)].map(({dataset}) => dataset.symbol)", which)


def cell(page: Any, name: str, row: int, col: int) -> Any:
    """A cell of the grid of that name on the stage."""
    return page.locator(f'#stage .grid[data-name="{name}"] td[data-row="{row}"][data-col="{col}"]')


def printed_sum(page: Any) -> float:
    return float(page.locator("#stage .worked > .terms:not(.aside) .total").get_attribute("data-value"))


def lit(page: Any, name: str) -> list[list[int]]:
    """The highlighted cells of an operand on the stage."""
    return page.evaluate("""(name) => [...document.querySelectorAll(`#stage .grid[data-name="${name}"] td.lit`)]
        .map(({dataset}) => [Number(dataset.row), Number(dataset.col)])""", name)


def focused(page: Any) -> str:
    return page.evaluate("document.activeElement.dataset.key")
