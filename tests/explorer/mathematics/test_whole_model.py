"""The model that the page runs is the engine's: every tensor and gradient at every place, every parameter, the loss."""

import json
import math

import numpy as np
import pytest

from tests.explorer.mathematics.whole_model import (
    BREAKAGES,
    CONFIGURATIONS,
    as_data,
    assert_same,
    model_of,
    sentences,
    steps_of,
)

NAMES = list(CONFIGURATIONS)

ASKING = """
([{config, parameters}, pairs, options, item]) => {
  const matrices = new Map(Object.entries(JSON.parse(JSON.stringify(parameters), decoded)));
  const run = new BatchRun(matrices, config, pairs.map(([source, target]) => ({source, target})), options, item);
  const nested = (record) => Object.fromEntries(Object.entries(record)
    .filter(([symbol, value]) => value instanceof Matrix && symbol !== "mask")
    .map(([symbol, value]) => [symbol, value.toNested()]));
  const place = ({heads, shared}) => ({heads: heads.map(nested), shared: nested(shared)});
  const answer = () => { %s };
  // Faster than playwright's own way, and with −∞.
  return JSON.stringify(answer(), (_, value) => (value === -Infinity ? "-inf" : value));
}"""
ALL = """
  return {
    loss: run.loss, gradients: nested(Object.fromEntries(run.parameterGradients)),
    items: pairs.map((_, n) => run.order.map((path) => (
      {path, ...place((({full, items}) => (full?.items ?? items)[n])(run.result(path)))}))),
  };"""


def ask(page, model, expression, item=0, **options):
    """What JavaScript makes of `run`, the batch in the page."""
    return json.loads(page.evaluate(ASKING % expression, [as_data(model), sentences(), options, item]))


def of_places(page, model, function, item=0, **options):
    """What a function of JavaScript makes of the Result of each place, by path."""
    found = f"run.order.map((path) => [path, ({function})(run.result(path))])"
    return ask(page, model, f"return Object.fromEntries({found});", item, **options)


def assert_run(page, model, item=0, edit=None, **options):
    """Loss, gradients and every tensor of every place, against minigrad's."""
    loss, items, gradients = steps_of(model, item, edit, **options)
    found = ask(page, model, ALL, item, edit=edit, **options)
    assert found["loss"] == pytest.approx(loss, rel=1e-11)
    assert found["gradients"].keys() == gradients.keys()
    for parameter, gradient in gradients.items():
        assert_same(found["gradients"][parameter], gradient.reshape(-1, gradient.shape[-1]), parameter)
    for places, expected in zip(found["items"], items, strict=True):
        assert {place["path"] for place in places} == expected.keys()
        for place in places:
            for symbol, matrices in expected[place["path"]].items():
                records = [place["shared"]] if symbol in place["shared"] else place["heads"]
                for record, matrix in zip(records, matrices, strict=True):
                    assert_same(record[symbol], matrix, f"{place['path']} {symbol}")


@pytest.mark.parametrize("name", NAMES)
def test_every_tensor_and_gradient_of_the_model_is_the_engines(page, name):
    assert_run(page, model_of(name))


@pytest.mark.parametrize("options", [{"scaling": False}, {"masking": False}], ids=str)
def test_a_switch_is_that_of_every_attention(page, options):
    assert_run(page, model_of("pre"), **options)


def test_an_edited_entry_goes_on_from_there(page):
    """A query; and what arrives at an attention's output, where `offset` is what the edit adds."""
    model, path = model_of("pre"), "decoder.layers.0.self_attention"
    assert_run(page, model, 0, {"path": path, "symbol": "Q", "head": 1, "row": 2, "col": 0, "value": 1.75})
    before = ask(page, model, f"return run.result({path!r}).shared.dY.at(1, 2);", 1)
    assert_run(page, model, 1, {"path": path, "symbol": "dY", "head": 0, "row": 1, "col": 2, "value": -0.7,
                                "offset": -0.7 - before})


# ------------------------------------------------------------------ what the page says of its numbers

@pytest.mark.parametrize(("name", "item", "broken"), [
    *((name, item, None) for name in NAMES for item in (0, 1)), *(("pre", 0, broken) for broken in BREAKAGES)])
def test_the_sum_behind_every_cell_of_every_tensor_is_the_cell(page, name, item, broken):
    for path, found in of_places(page, model_of(name), "writtenSums", item, broken=broken).items():
        for symbol, apart, fault in found:
            assert (apart < 1e-12, fault) == (True, 0), (path, symbol)


@pytest.mark.parametrize("item", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_facts_hold_in_every_place(page, name, item):
    facts = "(result) => result.heads.flatMap((_, head) => identities(result, head))"
    for path, found in of_places(page, model_of(name), facts, item).items():
        assert found or path.endswith("feed_forward"), path  # of which there are only with relu
        assert [fact for fact in found if not fact["holds"]] == [], path


# A gradient of a place made wrong in one cell, and the facts that then fail.
WRONG = [
    ("norm", "dX", {"mean", "length"}),
    ("residual", "dX", {"around"}),
    ("feed_forward", "dH", {"off"}),
    ("embedding", "dW", {"absent", "collected"}),
    ("output", "dZ", {"logits", "sign"}),
]


@pytest.mark.parametrize(("kind", "symbol", "fails"), WRONG)
def test_facts_fail_where_a_gradient_is_wrong(page, kind, symbol, fails):
    spoilt = f"""(result) => {{
      if (result.kind !== "{kind}") return [];
      const {{rows, cols, data}} = result.shared.{symbol};
      result.shared.{symbol} = new Matrix(rows, cols, data.map((x) => (x === 0 ? 1e-6 : -x) + 1e-6));
      return identities(result, 0).filter(({{holds}}) => !holds).map(({{key}}) => key);
    }}"""
    found = [set(keys) for keys in of_places(page, model_of("pre"), spoilt).values() if keys]
    assert found
    assert all(keys == fails for keys in found)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"scaling": False, "masking": False}], ids=str)
def test_finite_differences_of_the_loss_agree_at_every_place(page, name, options):
    for path, found in of_places(page, model_of(name), "checks", 1, **options).items():
        assert len(found) >= 3, path
        for check in found:
            assert check["ok"], (path, check)


def test_all_other_tokens_are_nudged_together(page):
    """The last column of the output, and one before it: the slope of the loss is the gradient that the page shows."""
    nudged = """(result) => (result.columns && result.kind === "output" ? ["Z", "W", "b"].flatMap((symbol) => (
      [0, result.columns.length].map((col) => nudge(result, {symbol, head: 0, row: 0, col}, 1e-4)))) : [])"""
    found = of_places(page, model_of(NAMES[-1]), nudged)["output"]
    assert len(found) == 6
    for each in found:
        assert each["difference"] == pytest.approx(each["gradient"], rel=1e-5)


def test_finite_differences_of_a_sure_model_agree(page):
    """Beside a loss as small as this one the logarithm of a probability near 1 is rounding."""
    model = model_of("pre, learned")
    model.projection.weight.copy_(0 * model.projection.weight.numpy())
    model.projection.bias.copy_(np.where(np.arange(11) == 5, 20.0, 0.0))
    five = "pairs.forEach(([, target]) => target.fill(5));"
    sure = ASKING.replace("const run", five + "const run") % (
        "return [run.loss, checks(run.result('output')).find(({symbol}) => symbol === 'b')];")
    loss, check = json.loads(page.evaluate(sure, [as_data(model), sentences(), {}, 0]))
    assert loss == pytest.approx(math.log1p(10 * math.exp(-20)), rel=1e-12)
    assert check["error"] < 1e-6, check


@pytest.mark.parametrize("broken", BREAKAGES)
def test_a_mistake_is_found_at_every_place_before_it(page, broken):
    """Of the whole model only what lies behind the last attention with the mistake is right."""
    model = model_of("pre")
    wrong = [path for path, found in of_places(page, model, "checks", 1, broken=broken).items()
             if not all(check["ok"] for check in found)]
    order = ask(page, model, "return run.order;")
    last = order.index(f"decoder.layers.1.{'self' if broken == 'mask' else 'cross'}_attention")
    assert wrong == order[:last + 1]


# ------------------------------------------------------------------ what the model is made of


def test_the_normal_distribution_is_right_to_the_last_digits(page):
    at = np.concatenate([np.linspace(-12, 12, 481), [-4.0, 4.0, 1e-300, 0.0]])
    found = page.evaluate("(at) => at.map(normalBelow)", at.tolist())
    assert found == pytest.approx([math.erfc(-x / math.sqrt(2)) / 2 for x in at], rel=0, abs=1e-15)


def test_a_norm_of_numbers_whose_squares_overflow_is_a_number(page):
    found = page.evaluate("normOf(new Matrix(1, 4, Float64Array.of(3e200, -Infinity, NaN, -4e200)))")
    assert found == pytest.approx(5e200, rel=1e-14)


def test_the_loss_keeps_its_digits(page):
    """Of a sure model, of a wrong one, and of logits whose exponentials overflow."""
    rows = [([0.0, 60.0, 3.0], 1), ([0.0, 60.0, 3.0], 0), ([900.0, -900.0, 900.0], 0), ([5.0, 5.0, 5.0], 2)]
    found = page.evaluate("""(rows) => rows.map(([row, target]) => (
      negativeLogarithms(new Matrix(1, row.length, Float64Array.from(row)), [target]).data[0]))""", rows)
    wanted = [math.exp(-60) + math.exp(-57), 60.0 + math.exp(-57), math.log(2), math.log(3)]
    assert found == pytest.approx(wanted, rel=1e-14, abs=0)
