"""Parallel text files: what a line is, and one clear line for everything that can be wrong."""

from pathlib import Path

import pytest

from transformer.data.batches import batches_by_length, collate, encode_pairs
from transformer.data.parallel_text import DataError, read_lines, read_parallel
from transformer.data.tokenizer import build_tokenizers
from transformer.data.vocabulary import UNK

ENJA = Path(__file__).parents[2].parent / "shared" / "data" / "small_parallel_enja"


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
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_pairs_in_order(write):
    assert read_parallel(write("a", "one\ntwo words\n"), write("b", "一\n二 語\n")) == [
        ("one", "一"),
        ("two words", "二 語"),
    ]


def test_a_path_may_be_a_string(write):
    assert read_parallel(str(write("a", "x")), str(write("b", "y"))) == [("x", "y")]


@pytest.mark.parametrize(
    "data",
    ["x\ny\n", "x\ny", "\ufeffx\ny\n", "x\r\ny\r\n", "\ufeffx\r\ny"],
    ids=["lf", "no last lf", "bom", "crlf", "bom, crlf, no last"],
)
def test_line_ends_and_byte_order_mark(write, data):
    assert read_lines(write("a", data)) == ["x", "y"]


@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\x1c", "\x1d", "\x1e", "\r"])
def test_only_line_feeds_end_a_line(write, inside):
    lines = [f"left{inside}right", "next"]
    assert read_lines(write("a", "\n".join(lines))) == lines


def test_a_mark_inside_the_text_and_blanks_at_the_edges_stay(write):
    assert read_lines(write("a", " x \ufeff\n\n\ty")) == [" x \ufeff", "", "\ty"]


def test_missing_file_and_folder(write, tmp_path):
    good = write("a", "x\n")
    assert error_of(tmp_path / "none", good) == f"cannot read {tmp_path / 'none'}: No such file or directory"
    assert f"cannot read {tmp_path}: " in error_of(good, tmp_path)


def test_different_line_counts(write):
    message = error_of(write("a", "x\ny\nz\n"), write("b", "x\ny\n"))
    assert "a has 3 lines" in message
    assert "b has 2" in message


@pytest.mark.parametrize("data", ["", "\ufeff", "\n", " \n\t\n"])
def test_empty_file(write, data):
    good, empty = write("good", "x\n"), write("empty", data)
    assert f"{empty} is empty" in error_of(good, empty)
    assert f"{empty} is empty" in error_of(empty, good)


@pytest.mark.parametrize("bad", [b"caf\xe9", b"\xff\xfea\x00", b"\xed\xa0\x80", b"end\xe3\x81"])
def test_invalid_utf8_names_file_and_line(write, bad):
    path = write("bad", b"fine\nfine\n" + bad + b"\nfine\n")
    message = error_of(write("good", "x\n" * 4), path)
    assert message.startswith(f"{path}, line 3: not valid UTF-8")


def test_lines_blank_on_one_side_are_named(write):
    good, holes = write("good", "x\n" * 9), write("holes", "x\n \n" + "x\n" * 7)
    assert error_of(good, holes) == f"{holes} is blank at line 2, where the other file has text"
    assert f"{holes} is blank" in error_of(holes, good)
    many = write("many", "\n" * 8 + "x\n")
    assert error_of(good, many).startswith(f"{many} is blank at lines 1, 2, 3, 4, 5 and 3 more,")


def test_lines_blank_on_both_sides_are_passed_over(write):
    assert read_parallel(write("a", "x\n\ny\n"), write("b", "u\n \nv\n")) == [("x", "u"), ("y", "v")]


def test_data_error_is_a_value_error():
    assert issubclass(DataError, ValueError)


@pytest.mark.skipif(not ENJA.exists(), reason="the English-Japanese text is not beside the repository")
def test_real_text():
    pairs = read_parallel(ENJA / "train.en", ENJA / "train.ja")
    assert len(pairs) == 50_000
    assert pairs[0] == (read_lines(ENJA / "train.en")[0], read_lines(ENJA / "train.ja")[0])
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    english, japanese = build_tokenizers("words", sources, targets, shared=False, size=None)
    assert (len(english.vocabulary), len(japanese.vocabulary)) == (6634 + 4, 8774 + 4)
    examples = encode_pairs(pairs, english, japanese)
    assert not any(UNK in source or UNK in target for source, target in examples)
    batches = batches_by_length(examples, batch_tokens=4096, seed=0, epoch=0)
    batch = collate(examples, batches[0])
    first = int(batch.indices[0])
    assert english.decode(batch.source[0]) == sources[first]
    assert japanese.decode(batch.target[0]) == targets[first]
    real = sum(len(source) + len(target) + 1 for source, target in examples)
    collated = [collate(examples, batch) for batch in batches]
    padded = sum(batch.source.size + batch.target[:, 1:].size for batch in collated)
    assert real / padded > 0.97  # like lengths are together: little of the work is spent on padding
