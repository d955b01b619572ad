"""``translate``: lines in, lines out."""

import json
import shutil

import pytest

from tests.transformer.commands import call, contents, refused
from tests.transformer.digits import SENTENCES, translated
from transformer.translator import Translator


@pytest.mark.parametrize("size", [1, 4, 100])
def test_one_line_in_one_line_out(run, size):
    lines = [*SENTENCES[5:12], "", *SENTENCES[:3]]
    result = call("translate", run, "--batch-size", size, standard_input="\n".join(lines) + "\n")
    assert result.exit_code == 0
    assert result.stdout.split("\n") == [*map(translated, lines), ""]
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("standard_input", "output"),
    [(b"", ""), (b"\n", "\n"), (b"two", "二\n"), (b"\xef\xbb\xbfone\r\ntwo\r\n", "一\n二\n"),
     (b"one\x0btwo\n", "一 二\n")],
)
def test_line_ends(run, standard_input, output):
    assert call("translate", run, standard_input=standard_input).stdout == output


def test_several_translations_and_scores_are_in_columns(run):
    result = call("translate", run, "--beam", 3, "--nbest", 2, "--scores", standard_input="one two\n\nthree\n")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    expected = Translator.load(run).translate(["one two", "three"], beam=3, num_best=2)
    assert lines[1] == [""]
    for cells, found in zip([lines[0], lines[2]], expected, strict=True):
        assert cells == [cell for best in found for cell in (best.text, f"{best.score:.4f}")]
    only_texts = call("translate", run, "--beam", 3, "--nbest", 2, standard_input="one two\n").stdout
    assert only_texts == f"{lines[0][0]}\t{lines[0][2]}\n"
    only_scores = call("translate", run, "--scores", standard_input="one two\n").stdout
    assert only_scores.startswith("一 二\t-")


def test_scores_follow_the_length_penalty(run):
    plain, mean = (float(call("translate", run, "--scores", "--length-penalty", penalty,
                              standard_input="one two three\n").stdout.split("\t")[1]) for penalty in ("none", "mean"))
    assert mean == pytest.approx(plain / 4, abs=1e-4)


def test_what_comes_before_a_bad_line_is_translated(run):
    too_long = call("translate", run, standard_input="one\ntwo\n" + "two " * 9 + "\nthree\n")
    assert too_long.exit_code == 2
    assert too_long.stdout == "一\n二\n"
    assert too_long.stderr.startswith("Error: line 3: 10 tokens with end-of-sentence, more than the model's 8 ")
    not_text = call("translate", run, "--batch-size", 2, standard_input=b"one\ntwo\nthree\n\xff\none\n")
    assert not_text.exit_code == 2
    assert not_text.stdout == "一\n二\n三\n"
    assert not_text.stderr == "Error: standard input, line 4: not valid UTF-8 (byte 0xff)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--nbest 3", "--nbest 3 needs --beam 3 or more"),
        ("--max-length 9", "--max-length 9 is more than the model's 8 positions"),
        ("--beam 0", "0 is not in the range x>=1"),
        ("--alpha -1", "-1.0 is not in the range 0<=x<=10"),
        ("--alpha 1e308", "1e+308 is not in the range 0<=x<=10"),
        ("--alpha inf", "'--alpha': inf is not"),
        ("--alpha nan", "'--alpha': nan is not a finite number"),
        ("--length-penalty long", "'long' is not one of 'gnmt', 'mean', 'none'"),
        ("--checkpoint worst", "'worst' is not one of 'best', 'latest'"),
    ],
)
def test_mistakes_in_translating(run, arguments, message):
    assert message in refused("translate", run, *arguments.split(), standard_input="one\n")


def damage(folder, what):
    """Break the checkpoint of a copied run."""
    [checkpoint] = (folder / "checkpoints").iterdir()
    described = checkpoint / "run.json"
    values = json.loads(described.read_text(encoding="utf-8"))
    if what == "version":
        described.write_text(json.dumps(values | {"format": 99}), encoding="utf-8")
    elif what == "json":
        described.write_text("{", encoding="utf-8")
    elif what == "config":
        values["model"]["d_model"] = 36
        described.write_text(json.dumps(values), encoding="utf-8")
    elif what == "weights":
        weights = checkpoint / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-40])
    else:
        shutil.rmtree(checkpoint)


@pytest.mark.parametrize("command", ["translate", "evaluate", "info"])
def test_a_folder_that_is_no_model(tmp_path, command):
    assert "no such folder" in refused(command, tmp_path / "none")
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "is a file, not the folder of a training run" in refused(command, tmp_path / "file")
    assert "not the folder of a training run" in refused(command, tmp_path)


@pytest.mark.parametrize(
    ("what", "message"),
    [("version", "the checkpoint has format 99, this version reads format"), ("json", "run.json"),
     ("config", "damaged"), ("weights", "model.safetensors"), ("folder", "is missing")],
)
def test_a_checkpoint_that_cannot_be_used(run, tmp_path, what, message):
    copy = shutil.copytree(run, tmp_path / "copy")
    damage(copy, what)
    before = contents(copy)
    assert message in refused("info", copy)
    assert message in refused("translate", copy, standard_input="one\n")
    assert contents(copy) == before
