"""Parallel text files: what a line is, and one clear line for everything that can be wrong."""

import os

import pytest

from transformer.data.parallel_text import DataError, line_of_pair, read_lines, read_parallel


@pytest.fixture
def write(tmp_path):
    def write_file(name, data):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
        return path

    return write_file


def error_of(source, target):
    with pytest.raises(DataError) as caught:
        read_parallel(source, target)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_pairs_in_order_without_lines_blank_on_both_sides(write):
    source, target = write("a", "one\n\ntwo words\n"), write("b", "一\n \n二 語\n")
    assert read_parallel(source, target) == [("one", "一"), ("two words", "二 語")]
    assert read_parallel(str(source), str(target)) == read_parallel(source, target)
    assert [line_of_pair(source, index) for index in (0, 1)] == [1, 3]


def test_only_line_feeds_end_a_line_and_a_byte_order_mark_is_dropped(write):
    for data in ("x\ny\n", "x\ny", "\ufeffx\r\ny\r\n"):
        assert read_lines(write("a", data)) == ["x", "y"]
    lines = [*(f"left{inside}right" for inside in "\u2028\x0b\x0c\x85\x1c\r"), " x \ufeff", "", "\ty"]
    assert read_lines(write("a", "\n".join(lines))) == lines


@pytest.mark.parametrize(("source", "target", "problem"), [
    (None, "x\n", "cannot read {source}: No such file"),
    ("x\ny\nz\n", "x\ny\n", "{source} has 3 lines, {target} has 2;"),
    ("x\n", "", "{target} is empty"),
    ("x\n" * 4, b"fine\nfine\ncaf\xe9\nfine\n", "{target}, line 3: not valid UTF-8"),
    ("x\n" * 9, "x\n \n" + "x\n" * 7, "{target} is blank at line 2,"),
    ("\n" * 8 + "x\n", "x\n" * 9, "{source} is blank at lines 1, 2, 3, 4, 5 and 3 more,"),
], ids=str)
def test_mistakes_are_named(source, target, problem, write, tmp_path):
    paths = [tmp_path / "none" if data is None else write(name, data) for name, data in (("a", source), ("b", target))]
    assert problem.format(source=paths[0], target=paths[1]) in error_of(*paths)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="a device without an end")
def test_a_device_is_no_text():
    with pytest.raises(DataError, match="/dev/zero is a device"):
        read_lines("/dev/zero")


def test_a_number_names_no_open_file():
    with pytest.raises(TypeError):
        read_lines(0)
