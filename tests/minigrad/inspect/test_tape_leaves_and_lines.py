"""The gradients of leaves, which are those of the recorded backward, and the lines of programs, which stay legible."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import functional as F
from minigrad import inspect
from minigrad.device import to_numpy
from minigrad.inspect.lines import Line, short_names, shorten_lines

from tests.minigrad.inspect.recording import leaf, record


def test_leaves_have_the_gradient_of_the_recorded_backward_and_not_the_sum_of_all(device):
    w = leaf(3, 4, device=device)
    (w.T * 2).sum().backward()  # before the block

    def run():
        (w.T * 3).sum().backward()

    tape = record(run)
    (one,) = tape.leaves.values()
    transpose = next(entry for entry in tape.entries.values() if entry.name == "transpose")
    assert one.gradient_norm == transpose.gradient_norm == pytest.approx(3 * np.sqrt(12))
    assert np.linalg.norm(to_numpy(w.grad.data)) == pytest.approx(5 * np.sqrt(12))
    assert f"{one.gradient_norm:.2e}" == rows_of_leaves(tape)[0][-1]
    assert {box.norm for box in inspect.draw(tape).picture.boxes if box.kind == "leaf"} == {one.gradient_norm}


def test_of_several_backwards_the_last_one_counts_and_that_is_said():
    w, unused = leaf(4), leaf(2)

    def run():
        (w * 2).sum().backward()
        (w * w.detach() + w).sum().backward()
        mg.exp(unused)
        mg.grad((unused * 2).sum(), unused)

    tape = record(run)
    first, second = tape.leaves.values()
    assert first.gradient_norm == pytest.approx(np.linalg.norm(w.numpy() + 1))
    assert (first.times, second.times) == (2, 1)
    assert rows_of_leaves(tape)[0][-1] == "×2"
    assert second.gradient_norm == pytest.approx(2 * np.sqrt(2))  # `grad` counts as well, though .grad is not touched
    assert unused.grad is None


def test_leaves_have_their_gradients_after_their_hooks():
    w = leaf(4)
    w.register_hook(lambda g: g * 10)
    (one,) = record(lambda: w.sum().backward()).leaves.values()
    assert one.gradient_norm == pytest.approx(20)


def rows_of_leaves(tape):
    """The lines of the table of leaves, as lists of cells."""
    lines = str(tape).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("leaf "))
    return [line.split() for line in lines[start + 1:]]


def test_lines_keep_their_numbers_where_the_column_is_narrow():
    q = leaf(2, 5, 4)
    with mg.fused(False):
        tape = record(lambda: F.scaled_dot_product_attention(q, q, q).sum().backward())
    product = next(entry for entry in tape.entries.values() if entry.name == "matmul")
    numbers = (product.line.number, product.line.inner.number)
    for width in (80, 100, 120, 300):
        text = tape.text(width=width)
        shown = [line.split()[2] for line in text.splitlines() if line.split()[1:2] == ["matmul"]]
        assert any(re.fullmatch(rf"\S+:{numbers[0]}›\S+:{numbers[1]}", cell) for cell in shown), (width, shown)
        assert max(map(len, text.splitlines())) <= max(width, 115)
        assert re.search(r"^ *# +operation +made at", text, re.MULTILINE)
    assert f"test_tape_leaves_and_lines:{numbers[0]}›attention:{numbers[1]}" in text


def test_files_of_one_name_are_told_apart():
    lines = [Line("/home/ada/model/attention.py", 7, "f", Line("/lib/minigrad/functional/attention.py", 8, "g")),
             Line("/home/ada/train.py", 9, "h"), Line("/home/bob/model/attention.py", 10, "f")]
    names = short_names([*lines, lines[0].inner])
    assert names == {"/home/ada/model/attention.py": "ada/model/attention", "/home/ada/train.py": "train",
                     "/lib/minigrad/functional/attention.py": "functional/attention",
                     "/home/bob/model/attention.py": "bob/model/attention"}
    assert short_names([Line("<stdin>", 1, "f"), Line("<stdin>", 2, "f")]) == {"<stdin>": "<stdin>"}
    assert str(lines[1]) == "train:9"
    text = "model/attention:60›functional/attention:1033"
    assert [shorten_lines(text, width) for width in (len(text), 30, 12, 3)] \
        == [text, "model/att…:60›functional…:1033", "…:60›f…:1033", "…:60›…:1033"]


