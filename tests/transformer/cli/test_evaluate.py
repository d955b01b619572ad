"""``evaluate`` and ``info``."""

import json
import sys

import pytest

from minigrad.checkpoint import load_tensors

from tests.transformer.commands import call
from tests.transformer.digits import PAIRS
from transformer.cli import sources
from transformer.translator import Translator

SCORES = ["bleu", "bleu_signature", "chrf", "chrf_signature", "exact_match", "token_accuracy", "loss", "sentences",
          "truncated", "seconds"]


@pytest.fixture
def numbers(tmp_path):
    """The pairs that the model was trained on, as options."""
    for side, name in enumerate(("source", "target")):
        (tmp_path / name).write_text("\n".join(pair[side] for pair in PAIRS), encoding="utf-8")
    return ["--source", tmp_path / "source", "--target", tmp_path / "target"]


def test_evaluate_prints_one_json_object(run, numbers):
    result = call("evaluate", run, *numbers, "--beam", 2)
    assert result.exit_code == 0
    values = json.loads(result.stdout)
    expected = Translator.load(run).evaluate(*zip(*PAIRS, strict=True), beam=2)
    assert list(values) == SCORES
    assert values == {name: expected[name] for name in SCORES} | {"seconds": values["seconds"]}
    assert values["exact_match"] == 1.0
    assert "tok:char" in call("evaluate", run, *numbers, "--bleu-tokenize", "char").stdout


def test_a_run_on_text_is_evaluated_on_its_validation_text(run, monkeypatch):
    """Each source counts once, with the first of its references."""
    text = sources.Text([], [("one", "一"), ("two", "二"), ("one", "三")])
    monkeypatch.setattr(sources, "read", lambda data: text)
    values = json.loads(call("evaluate", run).stdout)
    assert (values["sentences"], values["exact_match"]) == (2, 1.0)


@pytest.mark.parametrize("sacrebleu", [True, False])
def test_the_table_of_the_sentences(run, tmp_path, sacrebleu, monkeypatch):
    """Blank pairs are left out, and tabs do not make columns."""
    source, target, output = (tmp_path / name for name in ("source", "target", "output.tsv"))
    source.write_text("one\ttwo\n\nthree\n", encoding="utf-8")
    target.write_text("一 二\n二\n二\n", encoding="utf-8")
    if not sacrebleu:
        monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    result = call("evaluate", run, "--source", source, "--target", target, "--output", output)
    assert result.stderr.startswith("note: left out: 1 pairs")
    assert json.loads(result.stdout)["sentences"] == 2
    assert (json.loads(result.stdout)["chrf"] is None) == (not sacrebleu)
    right, wrong = "100.00", "0.00"
    assert output.read_text(encoding="utf-8") == (
        f"source\treference\toutput\tscore\none two\t一 二\t一 二\t{right}\nthree\t二\t三\t{wrong}\n")


def test_notes_on_the_sources(run, tmp_path):
    """One on all words that the vocabulary lacks, one on all sources that are too long."""
    for name, text in (("source", "one four\nfive five four five\n" + "two " * 8 + "\n"), ("target", "一\n二\n三\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = call("evaluate", run, "--source", tmp_path / "source", "--target", tmp_path / "target")
    unknown, long, scores = result.stderr.splitlines()
    assert "2 of 3 sources have parts that the vocabulary lacks, most often 'four' (2), 'five' (1)" in unknown
    assert "1 sources are cut" in long
    assert scores.startswith("bleu ")


def test_info(run):
    result = call("info", run)
    assert result.exit_code == 0
    arrays, _ = load_tensors(next((run / "checkpoints").iterdir()) / "model.safetensors")
    assert f"{sum(array.size for array in arrays.values()):,} parameters" in result.stdout
    assert {("d_model", "32"), ("step", "120")} <= {tuple(line.split(None, 1)) for line in result.stdout.splitlines()}
