"""``translate``: lines in, lines out."""

import re

import pytest

from tests.transformer.commands import call
from transformer.translator import Translator


@pytest.mark.parametrize(("standard_input", "status", "output", "said"), [
    (b"", 0, "", ""),
    (b"two", 0, "二\n", ""),
    (b"three one\n\none two three\ntwo\n", 0, "三 一\n\n一 二 三\n二\n", ""),
    (b"\xef\xbb\xbfone\r\ntwo\r\n", 0, "一\n二\n", ""),
    (b"one\x0btwo\n", 0, "一 二\n", ""),
    (b"one\ntwo\nthree\n\xff\none\n", 2, "一\n二\n三\n",
     "Error: standard input, line 4: not valid UTF-8 (byte 0xff); convert it by iconv, from latin1 for instance\n"),
    (b"one\n" + b"x" * 2**24, 2, "一\n", "Error: standard input, line 2: it has 16,777,216 bytes or more\n"),
], ids=["empty", "no end", "a line for each", "byte order mark", "vertical tab", "not UTF-8", "endless"])
def test_lines(run, standard_input, status, output, said):
    """What comes before a bad one is translated."""
    result = call("translate", run, "--batch-size", 2, standard_input=standard_input)
    assert (result.exit_code, result.stdout, result.stderr) == (status, output, said)


def test_what_a_translation_must_and_may_not_say(run):
    options = {"beam": 2, "prefix": "三 三", "min_length": 4, "repetition_penalty": 1.2, "no_repeat_ngram_size": 2}
    expected = Translator.load(run).translate(["one", "two three"], **options)
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    result = call("translate", run, *given, standard_input="one\ntwo three\n")
    assert result.stdout.splitlines() == [best.text for [best] in expected]
    assert all(best.text.startswith("三 三") and len(best.ids) >= 4 for [best] in expected)


@pytest.mark.parametrize(("lines", "read", "notes"), [
    (["one", "two " * 9, "three"], ["one", "two " * 7, "three"], ["line 2: cut to the model's 8 positions"]),
    (["one four", "two", "five six five"], ["one <unk>", "two", "<unk> <unk> <unk>"],
     ["line 1: the vocabulary lacks 'four';", "line 3: the vocabulary lacks 'five', 'six';"]),
    (["\ufeffone", "\ufefftwo"], ["one", "<unk>"], [r"line 2: the vocabulary lacks '\\ufefftwo'"]),
    (["four"] * 200, ["<unk>"] * 200, ["line 1: "] + [""] * 19 + ["180 further notes"]),
    ([f"one \x1b[2J{'x' * 10_000}"], ["one <unk>"], [r"line 1: the vocabulary lacks '\\x1b\[2Jx{1,40}'"]),
], ids=["long", "unknown", "byte order marks", "many", "control characters"])
def test_notes_on_lines(run, lines, read, notes):
    """In one line for each, of a bounded length, and for a bounded number of lines."""
    result = call("translate", run, "--batch-size", 2, standard_input="\n".join(lines))
    assert result.exit_code == 0
    found = result.stderr.splitlines()
    assert len(found) == len(notes)
    assert all(re.match(f"note: {note}", line) and len(line) < 200 for note, line in zip(notes, found, strict=True))
    assert "\x1b" not in result.stderr
    assert result.stdout.splitlines() == [best.text for [best] in Translator.load(run).translate(read)]
