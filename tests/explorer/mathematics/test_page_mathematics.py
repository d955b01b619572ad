"""The numbers of the page are the engine's: every tensor and gradient under every switch, and the sum of every cell."""

from itertools import product

import numpy as np
import pytest

from tests.explorer.mathematics.asking import BREAKAGES, CASES, EDITS, NAMES, ask, assert_same
from tests.explorer.mathematics.one_attention import HEADS, engine


def assert_all_same(found, expected):
    """Every matrix by symbol, of one head; none is missing, and there is none too many."""
    aliases = {"G": expected["dY"]}
    if "M" not in expected:  # self-attention: M is X
        aliases |= {"M": expected["X"]}
    inputs = {path: expected.get("M" if path != "Xq" else "X", expected["X"]) for path in ("Xq", "Xk", "Xv")}
    wanted = {symbol: value for symbol, value in expected.items() if not symbol.startswith("sum of")} | aliases | inputs
    assert found.keys() == wanted.keys()
    for symbol, value in wanted.items():
        assert_same(found[symbol], value, symbol)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("scaling", "masking"), list(product([True, False], repeat=2)))
def test_every_tensor_and_gradient_is_the_engines(page, name, scaling, masking):
    expected = engine(CASES[name], scaling, masking)
    for item, heads in enumerate(expected):
        found = ask(page, name, "allTensors(result)", item, scaling=scaling, masking=masking)
        assert len(found) == HEADS
        for head, matrices in enumerate(heads):
            assert_all_same(found[head], matrices)


@pytest.mark.parametrize("name", ["causal", "dropout"])
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit["symbol"])
@pytest.mark.parametrize("switches", [{}, {"scaling": False, "masking": False}], ids=["", "switched off"])
def test_an_edited_entry_goes_on_from_there(page, name, edit, switches):
    expected = engine(CASES[name], edit=edit, item=1, **switches)
    found = ask(page, name, "allTensors(result)", item=1, edit=edit, **switches)
    for head in range(HEADS):
        assert_all_same(found[head], expected[1][head])
    assert found[edit["head"]][edit["symbol"]][edit["row"]][edit["col"]] == pytest.approx(edit["value"], rel=1e-14)
    others = ask(page, name, "result.items[0].heads.map(({dQ}) => dQ.toNested())", item=1, edit=edit, **switches)
    for head in range(HEADS):
        assert_same(others[head], engine(CASES[name], **switches)[0][head]["dQ"], "the other item")


@pytest.mark.parametrize("name", NAMES)
def test_the_three_paths_are_kept_apart_and_summed_over_the_heads(page, name):
    for path in ("dXq", "dXk", "dXv"):
        found = ask(page, name, f"result.shared.{path}.toNested()")
        assert_same(found, engine(CASES[name])[0][0][f"sum of {path}"], path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"scaling": False, "masking": False}, {"edit": EDITS[0]}],
                         ids=["", "switched off", "edited"])
def test_the_sum_written_out_for_a_cell_is_the_engines_number(page, name, options):
    item = len(CASES[name].x) - 1
    expected = engine(CASES[name], item=item, **options)[item]
    found = ask(page, name, "allCells(result, ({sum}) => sum)", item, **options)
    for head in range(HEADS):
        assert_all_same(found[head], expected[head])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("broken", [None, *BREAKAGES])
def test_a_sum_adds_what_it_shows(page, name, broken):
    """Terms add up to the sum and are the products of their factors, which are entries of the tensors they name."""
    assert ask(page, name, "faultOfSums(result)", broken=broken) == 0
    sums = ask(page, name, "allCells(result, ({sum}) => sum)", broken=broken)
    tensors = ask(page, name, "allTensors(result)", broken=broken)
    for head in range(HEADS):
        for symbol, matrix in tensors[head].items():
            assert_same(sums[head][symbol], np.array(matrix), symbol, tolerance=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_accumulate_token_by_token(page, name):
    case, item = CASES[name], len(CASES[name].x) - 1
    expected = engine(case)[item][1]
    expected.setdefault("M", expected["X"])  # in self-attention
    # Outer products of rows of these two, over the queries or over the keys.
    factors = {"dV": ("Ad", "dO"), "dK": ("dR", "Q"), "dWQ": ("X", "dQ"), "dWK": ("M", "dK"), "dWV": ("M", "dV"),
               "dWO": ("C", "dY")}
    found = ask(page, name, """Object.fromEntries(
      Object.keys(kindOfResult(result).tensors).filter((symbol) => accumulates(symbol, result)).map((symbol) => {
        const tokens = summands(result, 1, symbol).map(({item, index}) => [item, index]);
        const sums = [0, 1, 2, tokens.length].map((n) => partialSum(result, 1, symbol, n).toNested());
        return [symbol, {tokens, sums}];
      }))""", item)
    assert found.keys() == factors.keys()
    for symbol, (left, right) in factors.items():
        count = len(expected[left])
        tokens = found[symbol]["tokens"]
        assert tokens[:count] == [[item, index] for index in range(count)]  # the chosen item first
        assert len(tokens) == count * (len(case.x) if symbol.startswith("dW") else 1)
        *first, whole = found[symbol]["sums"]
        for n, partial in enumerate(first):
            assert_same(partial, expected[left][:n].T @ expected[right][:n], f"{symbol}, {n} tokens")
        assert_same(whole, expected[symbol], symbol)
