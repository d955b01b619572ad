"""The view of the program: each place has its lines, and the chosen tensor its own."""

import re

import pytest

from minigrad.inspect import program

from tests.explorer.pages import CAUSAL, CROSS, SELF, SOURCES, TARGETS, WORDS, show
from tests.transformer.tiny import tiny_model
from transformer.explore.translation import double

RESIDUAL = f"{CROSS}_residual"
MARKED = "[...document.querySelectorAll('#panel [aria-current]')].map((line) => line.textContent.trim())"


def test_the_lines_are_those_of_the_program(opened):
    model, ids = double(tiny_model()), ([[*WORDS.encode(text), 2]] for text in (SOURCES[0], TARGETS[0]))
    text, _ = program(lambda: model.loss(*ids), model)
    assert opened.evaluate("page.model.program.flatMap(([, , lines]) => lines).join('\\n')") == text
    lines = set(text.splitlines())
    show(opened, panel="program")
    for place in range(opened.evaluate("page.places.length")):
        show(opened, place=place)
        shown = opened.eval_on_selector_all("#panel code", "all => all.map((one) => one.textContent)")
        assert shown, place
        assert set(shown) <= lines, place


@pytest.mark.parametrize(("place", "symbol", "line"), [
    (SELF, "Q", r"queries = linear\(out, .*self_attention.query.weight"),
    (CAUSAL, "A", r"weights_2 = exponentials / "),
    (CROSS, "dWV", r"t_\d+, d_weight_\d, d_bias_\d = linear_backward\(.*cross_attention.value"),
    (CROSS, "dM", r"d_out_4 = t_\d+ \+ t_\d+ "),
    (CROSS, "R", None),
    (f"{RESIDUAL}.norm", "dX", r"d_bias_9, d_weight_10, grad_input_2 = layer_norm_backward\("),
    (RESIDUAL, "dY", "d_output = d_linear_2 [+] grad_input "),
    ("output", "dZ", r"d_linear = d_losses_2.reshape\("),
])
def test_the_line_of_the_chosen_tensor_is_marked(opened, place, symbol, line):
    show(opened, panel="program", place=place, symbol=symbol)
    marked = opened.evaluate(MARKED)
    assert [bool(re.match(line, one)) for one in marked] == [True] if line else marked == []
