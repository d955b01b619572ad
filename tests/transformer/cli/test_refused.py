"""What commands refuse: in one line, which says what, before they write anything."""

import shlex
import shutil
import sys

import pytest

from minigrad import nn

from tests.transformer.commands import SMALL, call, refused
from tests.transformer.runs import edit_json, snapshot
from transformer import Transformer

GOOD = "good.src good.tgt"
NAMES = ", ".join(f"{stack}.layers.0.{name}_attention" for stack, name in (
    ("encoder", "self"), ("decoder", "self"), ("decoder", "cross")))
REFUSED = {
    "train": [
        ("", "give one of --task NAME, --train TABLE and --train SRC TGT"),
        ("--train", "Option '--train' requires an argument."),
        (f"--train {GOOD} good.src", "--train takes one table, or two files"),
        ("--train - -", "standard input"),
        ("--task copy --train-count 9 --d-model 64 --heads 5", "d_model (64)"),
        ("--task copy --profile nowhere/trace.json", "--profile"),
        ("--task copy --learning-rate nan", "learning_rate must be positive, got nan"),
        ("--task copy --device tpu", "unknown device 'tpu'"),
        ("--task copy --train-count 99 --max-length 5 --steps 1", "raise --max-length"),
        ("--task copy --train-count 9 --metric bleu", "pip install 'minigrad-transformer[data]'"),
        ("--task copy --valid good.src", "--valid: not for a generated task"),
        (f"--task copy --steps {10**30}", "steps must be from 1 to 10**12"),
        (f"--task copy --layers {10**9}", "out of memory (the model takes more than"),
        (f"--task copy --max-length {10**11} --train-count 9", "out of memory (the model takes more than"),
        (f"--task copy --train-count 9 --no-such-option{'x' * 10**5}", "No such option"),
        (f"--train latin.src good.tgt --valid {GOOD}", "latin.src, line 2"),
        (f"--train {GOOD} --valid {GOOD} --max-length 1", "no pair of the training text has at most 1 tokens a side"),
        (f"--train {GOOD} --valid {GOOD} --train-count 9", "--train-count: not for text files"),
        (f"--train {GOOD} --source-tokenizer good.src --target-tokenizer good.src --tokens bpe", "--tokens: not for"),
    ],
    "translate": [
        ("--max-length 9", "max_length 9 is more than the model's 8"),
        (f"--beam {10**11}", "is not in the range"),
        ("--alpha nan", "alpha"),
        ("--prefix 一四", "the target's vocabulary lacks '一四' of the prefix"),
        ("--min-length 6 --no-repeat-ngram-size 1", "no token may follow"),
    ],
    "evaluate": [
        (f"--count {10**12}", "is not in the range"),
        ("", "cannot read"),
        ("--source good.src", "give both files, or none"),
        ("--output nowhere/output.tsv", "--output"),
    ],
    "explain": [
        ("one --html nowhere/page.html", "there is no folder nowhere"),
        ("'  ' 一 --text", "source 1 is empty"),
        ("one 一 --text --also 'two two two two two two two two'", "a sequence of 9 tokens is longer"),
        ("one --text --attention decoder.layers.1", f"'decoder.layers.1'; there are {NAMES}"),
        ("one --text --head 5", "there is no head 5 in"),
        ("one --text --step foo", "there is no step 'foo' in"),
    ],
    "write-out": [
        ("one '  '", "the target is empty"),
        ("one --out step.txt", "ends in .py"),
        ("one --out nowhere/step.py", "there is no folder nowhere"),
    ],
}


@pytest.mark.parametrize(("command", "arguments", "message"), [
    (command, *row) for command, rows in REFUSED.items() for row in rows])
def test_in_one_line(command, arguments, message, run, files, tmp_path, monkeypatch):
    if "bleu" in arguments:
        for name in ("sacrebleu", "sacrebleu.metrics"):
            monkeypatch.setitem(sys.modules, name, None)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    words = [str(files.get(word, word)) for word in shlex.split(arguments)]
    words = [*words, "--out", "run", "--quiet"] if command == "train" else [run, *words]
    said = refused(command, *words, standard_input="" if command == "train" else "one\n")
    assert message in " ".join(said.split())
    assert len(said) < 1100
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("package", ["tokenizers", "sacrebleu"])
def test_for_want_of_a_package_that_text_needs_before_anything_is_read(package, tmp_path, monkeypatch):
    for name in (package, "sacrebleu.metrics"):
        monkeypatch.setitem(sys.modules, name, None)
    assert f"the package '{package}'" in refused("train", "--train", "missing.tsv", "--out", tmp_path / "run")


@pytest.mark.parametrize("command", ["translate", "evaluate", "info", "train"])
def test_for_a_folder_that_is_no_run(command, files, tmp_path):
    def said(folder):
        return refused(command, *(["--resume", "--out"] if command == "train" else []), folder)

    assert "no such folder" in said(tmp_path / "none")
    assert f"{files['good.src']}: is a file" in said(files["good.src"])
    assert "not the folder of a training run" in said(tmp_path)


@pytest.mark.parametrize("command", [["translate"], ["evaluate"], ["info"], ["explain", "one", "--text"]])
def test_for_a_run_of_a_model_with_other_layers(command, run, monkeypatch):
    """As when somebody changes the Transformer and goes on using an earlier run."""
    class Changed(Transformer):
        def __init__(self, config):
            super().__init__(config)
            self.extra = nn.Linear(4, 4)

    monkeypatch.setattr("transformer.training.checkpoints.Transformer", Changed)
    name, *rest = command
    assert "the weights do not fit the configuration: " in refused(name, run, *rest)


def test_for_a_folder_that_holds_a_run_or_a_file(run, files, small_run, tmp_path):
    before = snapshot(run)
    assert "Missing option '--out'" in refused("train", "--task", "copy")
    assert f"{files['good.src']}: is a file" in refused("train", *SMALL, "--out", files["good.src"])
    assert "already holds a training run; go on with --resume" in refused("train", "--task", "copy", "--out", run)
    assert snapshot(run) == before
    without_data = shutil.copytree(small_run, tmp_path / "run")
    for path in without_data.glob("checkpoints/*/run.json"):
        edit_json(path, data={})
    for command in (["evaluate"], ["train", "--resume", "--out"]):
        assert "has no description of its data" in refused(*command, without_data)
    assert call("info", run).exit_code == 0
