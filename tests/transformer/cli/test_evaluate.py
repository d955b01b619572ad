"""``evaluate`` and ``info``."""

import json

import pytest

from minigrad.checkpoint import load_tensors

from tests.transformer.commands import call, refused
from tests.transformer.digits import PAIRS
from transformer.translator import Translator


@pytest.fixture
def numbers(tmp_path):
    """The pairs that the model was trained on, as options."""
    for side, name in enumerate(("source", "target")):
        (tmp_path / name).write_text("\n".join(pair[side] for pair in PAIRS), encoding="utf-8")
    return ["--source", tmp_path / "source", "--target", tmp_path / "target"]


def test_evaluate_prints_one_json_object(run, numbers):
    result = call("evaluate", run, *numbers, "--beam", 2)
    assert result.exit_code == 0
    values, expected = json.loads(result.stdout), Translator.load(run).evaluate(PAIRS, beam=2)
    assert list(values) == ["exact_match", "token_accuracy", "loss", "bleu", "bleu_signature", "sentences", "seconds"]
    assert values | {"seconds": 0} == expected | {"seconds": 0}
    assert values["exact_match"] == 1.0


def test_people_get_rounded_scores(run, numbers, monkeypatch):
    """The JSON has all digits."""
    result = {"exact_match": 1 / 3, "token_accuracy": 0.98765, "loss": 0.123456, "bleu": 36.293849, "sentences": 1000}
    monkeypatch.setattr(Translator, "evaluate", lambda translator, pairs, **options: result)
    told = call("evaluate", run, *numbers)
    assert json.loads(told.stdout) == result
    assert told.stderr == "exact match 33.33 %, token accuracy 98.77 %, loss 0.1235, BLEU 36.29, on 1,000 sentences\n"
    monkeypatch.setitem(result, "bleu", None)
    assert "BLEU 0" not in call("evaluate", run, *numbers).stderr


def test_mistakes(run, small_run, without_data, files):
    assert "--count 1,000,000,000,000 is too many" in refused("evaluate", small_run, "--count", 10**12)
    assert "was trained on text files: give --source and --target" in refused("evaluate", run)
    assert "does not say what it was trained on: give --source and --target" in refused("evaluate", without_data)
    assert "give both files, or none" in refused("evaluate", run, "--source", files["good.src"])
    for source, target, message in (("missing.src", "good.tgt", "cannot read"),
                                    ("good.src", "long.tgt", "long.tgt, line 2: 301 target tokens")):
        assert message in refused("evaluate", run, "--source", files[source], "--target", files[target])


def test_info(run):
    result = call("info", run)
    assert result.exit_code == 0
    arrays, _ = load_tensors(next((run / "checkpoints").iterdir()) / "model.safetensors")
    assert f"{sum(array.size for array in arrays.values()):,} parameters" in result.stdout
    words = {tuple(line.split(None, 1)) for line in result.stdout.splitlines()}
    assert {("d_model", "32"), ("source", "7 words"), ("train", "a, b"), ("patience", "-"), ("tie_output", "no"),
            ("updates", "120")} <= words
    assert "exact match 100.00 %\n" in result.stdout
