"""``evaluate``: one JSON object, and a table of the sentences."""

import json
import sys

import pytest

from tests.transformer.commands import call
from tests.transformer.digits import PAIRS
from transformer.cli import sources
from transformer.translator import Translator


def test_evaluate_prints_one_json_object(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sides = [*zip(*PAIRS, strict=True)]  # what the model was trained on
    for name, side in zip("ab", sides, strict=True):
        (tmp_path / name).write_text("\n".join(side), encoding="utf-8")
    result = call("evaluate", run, "--source", "a", "--target", "b", "--beam", 2, "--bleu-tokenize", "char")
    values = json.loads(result.stdout)
    expected = Translator.load(run).evaluate(*sides, beam=2, bleu_tokenize="char")
    assert values | {"outputs": expected["outputs"], "seconds": expected["seconds"]} == expected


def test_a_run_on_text_is_evaluated_on_its_validation_text(run, monkeypatch):
    """Each source counts once, with the first of its references."""
    text = sources.Text([], [("one", "一"), ("two", "二"), ("one", "三")])
    monkeypatch.setattr(sources, "read", lambda data: text)
    values = json.loads(call("evaluate", run).stdout)
    assert (values["sentences"], values["exact_match"]) == (2, 1.0)


@pytest.mark.parametrize("sacrebleu", [True, False])
def test_the_table_of_the_sentences_and_the_notes_on_them(run, tmp_path, sacrebleu, monkeypatch):
    """Blank pairs are left out, and tabs do not make columns."""
    source, target, output = (tmp_path / name for name in ("source", "target", "output.tsv"))
    source.write_text(f"one\ttwo\n\nfour five\n{'two ' * 8}\n", encoding="utf-8")
    target.write_text("一 二\n二\nx\ny\n", encoding="utf-8")
    if not sacrebleu:
        monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    result = call("evaluate", run, "--source", source, "--target", target, "--output", output)
    empty, unknown, long, *no_bleu, scores = result.stderr.splitlines()
    assert empty.startswith("note: left out: 1 pairs")
    assert unknown.startswith("note: source 2: the vocabulary lacks 'four', 'five';")
    assert long.startswith("note: 1 sources are cut")
    assert bool(no_bleu) != sacrebleu
    assert scores.startswith("bleu " if sacrebleu else "exact_match ")
    assert json.loads(result.stdout)["truncated"] == 1
    titles, *rows = (line.split("\t") for line in output.read_text(encoding="utf-8").splitlines())
    assert titles == ["source", "reference", "output", "score"]
    assert rows[0] == ["one two", "一 二", "一 二", "100.00"]
    assert [(line[1], float(line[3]) < 100) for line in rows[1:]] == [("x", True), ("y", True)]
