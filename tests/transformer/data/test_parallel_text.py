"""Parallel text files: what a line is, and one clear line for everything that can be wrong."""

import codecs
import gzip
import io
import os
import random
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.data.parallel_text import DataError, ParallelText, hold_out, lines_of, read_parallel


@pytest.fixture
def write(tmp_path):
    def write_file(name, data):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
        return path

    return write_file


def error_of(*paths):
    with pytest.raises(DataError, match=r"^.*$") as caught:
        read_parallel(*paths)
    return str(caught.value)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(("contents", "problem"), [
    ([None, "x\n"], "cannot read {0}: No such file"), (["\ty\nx\t\n"], "{0}: no pair"),
    (["x\n" * 4, b"fine\nfine\ncaf\xe9\nfine\n"], "{1}, line 3: not valid UTF-8 (byte 0xe9); convert it"),
    ([b"a\tcaf\xe9\n"], "{0}, line 1: not valid UTF-8 (byte 0xe9); convert it"),
    (["a\tb\n\n" * 2499 + "a\tb\none column\n"], "{0}, line 5,000: no tab"),
], ids=str)
def test_mistakes_are_named(contents, problem, packed, write, tmp_path):
    paths = [tmp_path / "missing" if data is None else write(str(number), data) for number, data in enumerate(contents)]
    for path in paths:
        if packed and path.exists():
            path.write_bytes(gzip.compress(path.read_bytes()))
    assert error_of(*paths).startswith(problem.format(*paths))


def test_one_file_for_both_sides(write, tmp_path, monkeypatch):
    path, link = write("a", "x\n"), tmp_path / "link"
    os.link(path, link)
    for paths in ((path, path), (str(path), link), ("-", "-")):
        assert error_of(*paths).startswith("source and target are the same file")


@pytest.mark.parametrize("damage", [
    lambda packed: packed[:-9], lambda packed: packed[:20] + bytes(40) + packed[60:], lambda packed: packed + b"more"],
    ids=["ends early", "other data", "a foreign end"])
def test_damaged_gzip(damage, write):
    text = "".join(f"{random.Random(line).random()}\n" for line in range(100))
    packed = write("a", damage(gzip.compress(text.encode())))
    assert error_of(packed, write("b", text)).startswith(f"{packed} is damaged")


def test_no_text_but_of_a_file():
    with pytest.raises(TypeError):
        [*lines_of(0)]  # a number names no open file
    if os.path.exists("/dev/zero"):
        with pytest.raises(DataError, match="/dev/zero is a device"):
            [*lines_of("/dev/zero")]


def lines_by_definition(data):
    """A line ends with a line feed, before which one carriage return is dropped; the last line needs no ending."""
    rows = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    return [row.removesuffix(b"\r").decode() for row in (rows if rows[-1] else rows[:-1])]


PARTS = ["\n", "\n\n", "\r\n", "\r", "x", "two words\n", " ", "語\n", "é\n", "\u2028", "\u3000\n", "\x0c", "\x85\n",
         "\ufeff"]
texts = st.lists(st.sampled_from(PARTS), max_size=30).map(lambda parts: "".join(parts).encode())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


@settings(deadline=None)
@given(texts, texts)
def test_lines_and_pairs_are_those_of_the_definition(folder, source, target):
    """A pair is left out of which a side is blank; a table has the same pairs in its first two columns."""
    paths = folder / "source", folder / "target"
    for path, data in zip(paths, (source, target), strict=True):
        path.write_bytes(data)
    sides = [lines_by_definition(data) for data in (source, target)]
    assert [[*lines_of(path)] for path in paths] == sides
    expected = [pair for pair in zip(*sides, strict=False) if all(side.strip() for side in pair)]
    if len(sides[0]) != len(sides[1]):
        assert f"has {len(sides[0])} lines, {paths[1]} has {len(sides[1])};" in error_of(*paths)
    elif not expected:
        assert "no pair" in error_of(*paths)
    else:
        others = [pair for pair in zip(*sides, strict=True) if pair not in expected]
        rows = "".join(f"{left}\t{right}\tmore\there\r\n" for left, right in expected + others)
        table = folder / "table"
        table.write_bytes(codecs.BOM_UTF8 + rows.encode())
        for pairs in (ParallelText(*paths), ParallelText(*map(str, paths)), ParallelText(table)):
            assert [*pairs] == [*pairs] == expected
            assert (len(pairs), pairs.left_out) == (len(expected), len(sides[0]) - len(expected))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of Unix")
def test_a_pipe_is_loaded(write, tmp_path):
    """It can be read once, from its beginning to its end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("one\n\ntwo\n",))
    writer.start()
    pairs = ParallelText(pipe, write("b", "x\n\ny\n"))
    writer.join()
    assert [*pairs] == [*pairs] == [("one", "x"), ("two", "y")]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:])],
                         ids=["plain", "gzip", "two members"])
def test_gzip_and_standard_input(pack, write, monkeypatch):
    """By the first bytes, not by the name; a line may have a megabyte."""
    line = "word " * 200_000
    source, target, table = map(pack, (f"\ufeff{line}\r\none\n".encode(), f"一\n{line}".encode(),
                                       f"{line}\t一\none\t{line}".encode()))
    files = write("a", source), write("b.gz", target)
    for paths, piped in ((files, b""), ((files[0], "-"), target), (("-",), table)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        assert read_parallel(*paths) == [(line, "一"), ("one", line)]
        assert not sys.stdin.buffer.closed


def test_pairs_are_held_out_by_their_source():
    pairs = [(f"source {number % 20_000}", f"target {number}") for number in range(40_000)]
    training, validation = hold_out(pairs)
    assert 900 < len(validation) < 1100
    assert 15 < len(hold_out(pairs[:300])[1]) < 45
    assert sorted([*training, *validation]) == sorted(pairs)
    assert not {source for source, _ in training} & {source for source, _ in validation}
    assert next(iter(validation)) == ("source 5", "target 5")  # as in runs that began before
    with pytest.raises(DataError, match=r"^all pairs have one source: .* --valid"):
        hold_out([("x", "y")] * 30)
    assert [len(side) for side in hold_out([("x", "y"), *[("z", "y")] * 30])] in ([1, 30], [30, 1])
