"""The page knows right gradients from wrong ones: by finite differences, by nudges and by facts that always hold."""

import pytest

from tests.explorer.mathematics.asking import BREAKAGES, CASES, EDITS, NAMES, ask
from tests.explorer.mathematics.one_attention import HEADS, engine


def gradients_before(letters, case):
    """The tensors whose gradients come through those of Q, K or V, as far as the attention has them."""
    found = set()
    for letter in letters:
        found |= {letter, f"W{letter}", f"b{letter}", f"X{letter.lower()}"}
        found |= {"X"} if letter == "Q" or case.memory is None else {"M"}
    return found if case.bias else found - {f"b{letter}" for letter in letters}


SCORES = {"Sm", "S", "R"}
# db_K is 0 as long as the rows of dS sum to 0; db_V is the sum of dO as long as the weights of every row sum to 1.
WRONG = {
    "batch": lambda case: (SCORES | gradients_before("QK", case)) - {"bK"},
    "rowsum": lambda case: SCORES | gradients_before("QK", case),
    "mask": lambda case: (
        (SCORES | gradients_before("QKV", case)) - {"bK"} - ({"bV"} if case.dropped is None else set())),
    "transpose": lambda case: (
        gradients_before("K", case) if case.memory is None else
        {"C", "O", "Ad", "A"} | (SCORES | gradients_before("QKV", case)) - {"bK"}),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("switches", [{}, {"scaling": False, "masking": False}, {"edit": EDITS[1]}],
                         ids=["", "switched off", "edited"])
def test_finite_differences_agree_with_the_gradients(page, name, switches):
    found = ask(page, name, "checks(result)", item=len(CASES[name].x) - 1, **switches)
    case = CASES[name]
    expected = {"Y", "WO", "C", "O", "Ad", "A", *SCORES} | gradients_before("QKV", case)
    assert {check["symbol"] for check in found} == expected | ({"bO"} if case.bias else set())
    for check in found:
        assert check["ok"], check
        assert check["error"] < 1e-6, check


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("broken", BREAKAGES)
def test_each_breakage_is_found_where_it_is(page, name, broken):
    case = CASES[name]
    # In the last item, which is padded; dropping the mask of an item that has none would change less.
    found = ask(page, name, "checks(result)", item=len(case.x) - 1, broken=broken)
    wrong = {check["symbol"] for check in found if not check["ok"]}
    if broken == "mask" and case.mask is None:
        assert not ask(page, name, "BREAKAGES.find(({key}) => key === 'mask').applies(result.problem)")
        assert wrong == set()
        return
    assert ask(page, name, "result.broken.key", broken=broken) == broken
    assert wrong == WRONG[broken](case)
    for check in found:
        assert check["error"] < 1e-6 or check["error"] > 1e-3, check


def test_the_checks_do_not_depend_on_the_size_of_the_loss(page):
    """The gradients of a well trained model are tiny."""
    faint = """checks(compute({attentions: data.attentions.map(({g, ...rest}) => (
      {...rest, g: new NdArray(g.shape, g.data.map((x) => 1e-9 * x))}))}, index, item, options))"""
    for broken in (None, "rowsum"):
        found = ask(page, "causal", faint, item=1, broken=broken)
        wrong = {check["symbol"] for check in found if not check["ok"]}
        assert wrong == (set() if broken is None else WRONG[broken](CASES["causal"]))


FAILS = {
    "batch": set(),  # a constant factor changes none of the facts
    "rowsum": {"rows", "bias", "one key"},
    "transpose": {"bias"},
    "mask": {"dot", "masked", "one key"},
}


@pytest.mark.parametrize("switches", [{}, {"scaling": False}, {"masking": False}, {"edit": EDITS[2]}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_identities_hold(page, name, switches):
    for item in range(len(CASES[name].x)):
        for head in range(HEADS):
            facts = ask(page, name, f"identities(result, {head})", item, **switches)
            assert {"rows", "dot", "bias"} <= {fact["key"] for fact in facts}
            for fact in facts:
                assert fact["holds"], fact
                assert fact["residual"] <= 1e-12, fact


@pytest.mark.parametrize("broken", BREAKAGES)
def test_identities_fail_where_they_must(page, broken):
    facts = ask(page, "causal", "identities(result, 1)", broken=broken)
    assert {fact["key"] for fact in facts} == {"rows", "dot", "masked", "bias", "one key"}
    assert {fact["key"] for fact in facts if not fact["holds"]} == FAILS[broken]
    for fact in facts:
        assert fact["holds"] or fact["residual"] > 1e-3, fact


@pytest.mark.parametrize("name", NAMES)
def test_a_nudge_agrees_with_the_gradient(page, name):
    item = len(CASES[name].x) - 1
    every = """Object.entries(bySymbol(result, (symbol, head) => tensorAt(result, head, symbol))[1])
      .filter(([symbol]) => tensorAt(result, 1, `d${symbol}`) && !symbol.startsWith("d"))
      .flatMap(([symbol, {rows, cols}]) => [[0, 0], [rows - 1, cols - 1], [0, cols - 1]].map(([row, col]) => (
        {symbol, row, col, ...nudge(result, {symbol, head: 1, row, col}, 1e-4)})))"""
    found = ask(page, name, every, item)
    expected = engine(CASES[name])[item][1]
    assert {nudged["symbol"] for nudged in found} >= {"X", "Q", "K", "V", "S", "Sm", "A", "O", "C", "Y", "WQ", "WO"}
    for nudged in found:
        wanted = expected[f"d{nudged['symbol']}"][nudged["row"], nudged["col"]]
        assert nudged["difference"] == pytest.approx(wanted, rel=1e-6, abs=1e-6), nudged
        assert nudged["gradient"] == pytest.approx(wanted, rel=1e-9, abs=1e-13), nudged
