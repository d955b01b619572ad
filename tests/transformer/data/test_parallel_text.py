"""Parallel text files: what a line is, and one clear line for everything that can be wrong."""

import codecs
import gc
import os
import threading
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.data import parallel_text
from transformer.data.parallel_text import DataError, ParallelText, TextFile, line_of_pair, read_lines, read_parallel


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


def lines_by_definition(data):
    """A line ends with a line feed, before which one carriage return is dropped; the last line needs no ending."""
    rows = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    return [row.removesuffix(b"\r").decode() for row in (rows if rows[-1] else rows[:-1])]


PARTS = ["\n", "\n\n", "\r\n", "\r", "x", "two words\n", " ", "語\n", "é\n", "\u2028", "\u3000\n", "\x0c", "\x85\n",
         "\ufeff"]
texts = st.lists(st.sampled_from(PARTS), max_size=30).map(lambda parts: "".join(parts).encode())
broken = st.lists(st.sampled_from([*(part.encode() for part in PARTS), b"\xff", b"\xe8\xaa", b"\x9e"]), max_size=20)
few_lines_at_a_time = patch.multiple(parallel_text, STRIDE=3, PIECE=7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


@settings(deadline=None)
@given(texts)
def test_lines_by_offset(folder, data):
    """In a loop, from the middle, and from the end; with few lines between offsets and few bytes in a piece."""
    path = folder / "lines"
    path.write_bytes(data)
    expected = lines_by_definition(data)
    with few_lines_at_a_time:
        lines = TextFile(path)
        assert list(lines) == [*lines[:]] == read_lines(path) == expected
        assert len(lines) == len(expected)
        assert [lines[-1 - i] for i in range(len(expected))] == expected[::-1]
        with pytest.raises(IndexError):
            lines[len(expected)]


@settings(deadline=None)
@given(texts, texts)
def test_pairs_by_offset(folder, source, target):
    """Against the definition: what is blank in both files is skipped, what is blank in one is refused."""
    paths = folder / "source", folder / "target"
    for path, data in zip(paths, (source, target), strict=True):
        path.write_bytes(data)
    sides = [lines_by_definition(data) for data in (source, target)]
    texts = [[bool(line.strip()) for line in side] for side in sides]
    with few_lines_at_a_time:
        if not all(map(any, texts)):
            assert f"{paths[any(texts[0])]} is empty" in error_of(*paths)
        elif len(sides[0]) != len(sides[1]):
            assert f"has {len(sides[0])} lines, {paths[1]} has {len(sides[1])};" in error_of(*paths)
        elif texts[0] != texts[1]:
            side = 0 if any(right and not left for left, right in zip(*texts, strict=True)) else 1
            numbers = [n for n, pair in enumerate(zip(*texts, strict=True), 1) if not pair[side] and pair[1 - side]]
            assert f"{paths[side]} is blank at line{'s' * (len(numbers) > 1)} {numbers[0]}" in error_of(*paths)
        else:
            expected = [pair for pair in zip(*sides, strict=True) if pair[0].strip()]
            pairs = ParallelText(*paths)
            assert list(pairs) == pairs[:] == read_parallel(*paths) == expected
            assert [pairs[-1 - i] for i in range(len(pairs))] == expected[::-1]
            assert [line_of_pair(paths[0], i) for i in range(len(pairs))] == [n for n, t in enumerate(texts[0], 1) if t]


@settings(deadline=None)
@given(broken)
def test_bytes_that_are_no_utf8_are_named_alike_by_offset(folder, parts):
    path = folder / "broken"
    path.write_bytes(b"".join(parts))
    said = []
    for read in (read_lines, lambda path: list(TextFile(path))):
        with few_lines_at_a_time:
            try:
                said.append(read(path))
            except DataError as error:
                said.append(str(error))
    assert said[0] == said[1]


@pytest.mark.skipif(not hasattr(os, "pread"), reason="files are loaded where there is no pread")
@pytest.mark.parametrize("change", [lambda path: path.write_bytes(b"other\n"), lambda path: path.write_bytes(b""),
                                    lambda path: os.utime(path, ns=(1, 1))], ids=["shorter", "empty", "later"])
def test_a_file_that_changes_while_it_is_used(change, write):
    paths = write("a", "one\ntwo\n"), write("b", "x\ny\n")
    pairs = ParallelText(*paths)
    change(paths[1])
    for use in (lambda: pairs[1], lambda: list(pairs)):
        with pytest.raises(DataError, match=f"^{paths[1]} has changed while it was in use"):
            use()


@pytest.mark.skipif(not hasattr(os, "pread"), reason="files are loaded where there is no pread")
def test_a_file_that_is_replaced_or_removed_is_read_on_and_closed_in_the_end(write):
    """As editors and ``mv`` do: the old contents stay with the open file."""
    path, other = write("a", "one\ntwo\n"), write("b", "other\n")
    lines = TextFile(path)
    os.replace(other, path)
    assert list(lines) == ["one", "two"]
    path.unlink()
    assert lines[1] == "two"
    file = lines._file
    del lines
    gc.collect()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of Unix")
def test_a_pipe_is_loaded(write, tmp_path):
    """It can be read once, from its beginning to its end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=Path(pipe).write_text, args=("one\n\ntwo\n",))
    writer.start()
    pairs = ParallelText(pipe, write("b", "x\n\ny\n"))
    writer.join()
    assert pairs[1] == ("two", "y")
    assert list(pairs) == [("one", "x"), ("two", "y")]
