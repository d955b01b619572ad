"""``translate``: lines in, lines out."""

import re
import shutil

import pytest

from tests.transformer.commands import call, contents, refused
from tests.transformer.digits import SENTENCES, translated
from transformer.translator import Translator


def test_one_line_in_one_line_out(run):
    lines = [*SENTENCES[5:12], "", *SENTENCES[:3]]
    result = call("translate", run, "--batch-size", 4, standard_input="\n".join(lines) + "\n")
    assert result.exit_code == 0
    assert result.stdout.split("\n") == [*map(translated, lines), ""]
    assert result.stderr == ""


@pytest.mark.parametrize(("standard_input", "output"), [
    (b"", ""), (b"two", "二\n"), (b"\xef\xbb\xbfone\r\ntwo\r\n", "一\n二\n"),
    (b"one\x0btwo\n", "一 二\n"),
])
def test_line_ends(run, standard_input, output):
    assert call("translate", run, standard_input=standard_input).stdout == output


def test_what_a_translation_must_and_may_not_say(run):
    options = {"prefix": "三 三", "min_length": 4, "repetition_penalty": 1.2, "no_repeat_ngram_size": 2}
    expected = Translator.load(run).translate(["one", "two three"], beam=2, **options)
    given = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    result = call("translate", run, "--beam", 2, *given, standard_input="one\ntwo three\n")
    assert result.stdout.splitlines() == [best.text for [best] in expected]
    assert all(best.text.startswith("三 三") and len(best.ids) >= 4 for [best] in expected)


def test_a_long_line_is_cut_and_named(run):
    result = call("translate", run, standard_input="one\ntwo\n" + "two " * 9 + "\nthree\n")
    seven, = Translator.load(run).translate(["two " * 7])
    assert (result.exit_code, result.stdout) == (0, f"一\n二\n{seven[0].text}\n三\n")
    assert result.stderr.startswith("note: line 3: cut to the model's 8 positions")
    assert result.stderr.count("\n") == 1


def test_what_comes_before_a_bad_line_is_translated(run):
    not_text = call("translate", run, "--batch-size", 2, standard_input=b"one\ntwo\nthree\n\xff\none\n")
    assert (not_text.exit_code, not_text.stdout) == (2, "一\n二\n三\n")
    assert not_text.stderr == "Error: standard input, line 4: not valid UTF-8 (byte 0xff)\n"
    endless = call("translate", run, standard_input="one\n" + "x" * 2**24)
    assert (endless.exit_code, endless.stdout) == (2, "一\n")
    assert "line 2: it has 16,777,216 bytes or more" in endless.stderr


def test_what_the_vocabulary_lacks_is_told_beside_the_translation(run):
    """In one line for each line, of a bounded length, and for a bounded number of lines."""
    lines = ["one four", "two", "five six five", ""]
    result = call("translate", run, standard_input="\n".join(lines))
    notes = result.stderr.splitlines()
    assert [re.match("note: (line .): the vocabulary lacks (.*);", line).groups() for line in notes] == [
        ("line 1", "'four'"), ("line 3", "'five', 'six'")]
    assert (result.exit_code, result.stdout) == (0, call("translate", run, standard_input="\n".join(
        ["one <unk>", "two", "<unk> <unk> <unk>", ""])).stdout)
    [found] = call("translate", run, standard_input=f"one \x1b[2J{'x' * 10_000}").stderr.splitlines()
    assert len(found) < 200
    assert "\x1b" not in found
    result = call("translate", run, standard_input="four\n" * 200)
    assert len(result.stdout.splitlines()) == 200
    assert len(result.stderr.splitlines()) == 21
    assert result.stderr.splitlines()[-1].startswith("note: 180 further notes")


@pytest.mark.parametrize(("arguments", "message"), [
    ("--max-length 9", "max_length 9 is more than the model's 8"),
    (f"--beam {10**11}", "is not in the range"),
    ("--alpha nan", "alpha"),
    ("--prefix 一四", "the target's vocabulary lacks '一四' of the prefix"),
    ("--min-length 9", "a prefix or min_length of 9 tokens is more than the 8 of max_length"),
    ("--repetition-penalty 0", "'--repetition-penalty': 0.0"),
    ("--min-length 6 --no-repeat-ngram-size 1", "no token may follow"),
])
def test_mistakes(run, arguments, message):
    assert message in refused("translate", run, *arguments.split(), standard_input="one\n")


@pytest.mark.parametrize("command", ["translate", "evaluate", "info"])
def test_a_folder_that_is_no_model(command, run, tmp_path):
    assert "no such folder" in refused(command, tmp_path / "none")
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "is a file, not the folder of a training run" in refused(command, tmp_path / "file")
    assert "not the folder of a training run" in refused(command, tmp_path)
    copy = shutil.copytree(run, tmp_path / "copy")
    [weights] = copy.rglob("model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-40])
    before = contents(copy)
    assert "model.safetensors" in refused(command, copy)
    assert contents(copy) == before
