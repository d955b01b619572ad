"""``train``: from options to a run, and what is refused, in one line; the help of every command."""

import os
import shutil
import sys
from dataclasses import replace

import pytest

from tests.transformer.commands import COMMANDS, SMALL, call, contents, refused
from transformer.cli import main
from transformer.data import TASKS
from transformer.training.recipes import RECIPES


def test_a_task_alone_is_trained_by_its_recipe(begun, tmp_path):
    task = "addition"
    assert call("train", "--task", task, "--out", tmp_path, "--train-count", 300).exit_code == 130
    [run] = begun
    recipe = RECIPES[task]
    assert run.options == replace(recipe.options, threads=1)
    assert run.config == recipe.config(*run.tokenizers)
    assert run.train_pairs == TASKS[task].pairs("train", 300, recipe.options.seed)
    assert run.valid_pairs == TASKS[task].pairs("valid", recipe.valid_count, recipe.options.seed)
    assert {tokenizer.kind for tokenizer in run.tokenizers} == {TASKS[task].tokenizer_kind}
    assert (run.device, run.resume, run.progress, run.data["task"]) == ("cpu", False, True, task)


@pytest.mark.parametrize(("arguments", "expected"), [
    ("--layers 3 --decoder-layers 1 --dropout 0.25 --norm post",
     {"num_encoder_layers": 3, "num_decoder_layers": 1, "dropout": 0.25, "norm": "post"}),
    ("--max-length 33 --tie --shared-vocab", {"max_length": 33, "tie_output": True, "share_embeddings": True}),
    ("--config small --d-model 64", {"d_model": 64, "d_ff": 1024, "num_encoder_layers": 3, "dropout": 0.0,
                                     "max_length": 64}),
    ("--config base", {"d_model": 512, "dropout": 0.0, "max_length": 64, "share_embeddings": True}),
    ("--steps 7", {"steps": 7, "epochs": None}),
    ("--epochs 2", {"steps": None, "epochs": 2}),
    ("--epochs 2 --steps 7", {"steps": 7, "epochs": 2}),
    ("--minutes 1.5", {"minutes": 1.5, "steps": RECIPES["copy"].options.steps}),
    ("--clip 0 --warmup 9 --metric bleu", {"clip_norm": None, "warmup_steps": 9, "valid_metric": "bleu"}),
    ("--clip 2.5 --seed 8 --threads 3", {"clip_norm": 2.5, "seed": 8, "threads": 3}),
])
def test_options(begun, tmp_path, arguments, expected):
    call("train", "--task", "copy", "--out", tmp_path, "--train-count", 50, *arguments.split())
    [run] = begun
    found = run.config.to_json() | run.options.to_json()
    assert {name: found[name] for name in expected} == expected
    assert run.train_pairs == TASKS["copy"].pairs("train", 50, run.options.seed)


@pytest.mark.parametrize("kind", ["words", "characters", "bpe"])
def test_text_files(begun, files, tmp_path, kind):
    call("train", "--train", files["good.src"], files["good.tgt"], "--valid", files["good.src"], files["good.tgt"],
         "--out", tmp_path / "run", "--tokens", kind, "--vocab-size", 262)
    [run] = begun
    assert list(run.train_pairs) == run.valid_pairs == [("one two", "一 二"), ("three", "三")]
    assert [tokenizer.kind for tokenizer in run.tokenizers] == [kind, kind]
    assert all(len(tokenizer.vocabulary) <= 262 for tokenizer in run.tokenizers)
    assert run.config == RECIPES["text"].config(*run.tokenizers)
    assert replace(run.options, threads=None) == RECIPES["text"].options


GOOD = "good.src good.tgt"


@pytest.mark.parametrize(("arguments", "message"), [
    ("", "give one of --task NAME and --train SRC TGT"),
    (f"--train {GOOD}", "--train and --valid belong together"),
    ("--task copy --train-count 9 --d-model 64 --heads 5", "d_model (64)"),
    ("--task copy --steps -3", "-3 is not in the range"),
    ("--task copy --learning-rate nan", "'--learning-rate': nan"),
    ("--task copy --no-such-option", "No such option"),
    ("--task copy --device tpu", "unknown device 'tpu'"),
    ("--task copy --tokens bpe --vocab-size 200", "--vocab-size 200 is too small for --tokens bpe"),
    ("--task copy --train-count 99 --max-length 5 --steps 1", "raise --max-length"),
    ("--task copy --train-count 9 --metric bleu", "pip install 'minigrad-transformer[data]'"),
    ("--task copy --threads 100000", "100000 is not in the range"),
    (f"--task copy --steps {10**30}", "is not in the range"),
    (f"--task copy --train-count {10**12}", "train_count 1,000,000,000,000 is too many pairs"),
    (f"--task copy --layers {10**9}", "the model did not fit"),
    (f"--task copy --max-length {10**11} --train-count 9", "the model did not fit"),
    (f"--task copy --train-count 9 --no-such-option{'x' * 10**5}", "No such option"),
    (f"--train missing.src good.tgt --valid {GOOD}", "missing.src"),
    (f"--train latin.src good.tgt --valid {GOOD}", "latin.src, line 2"),
    (f"--train {GOOD} --valid gaps.src gaps.tgt", "gaps.src, line 4: 302 source tokens"),
    (f"--train {GOOD} --valid {GOOD} --train-count 9", "files are used whole"),
])
def test_mistakes(files, tmp_path, arguments, message, monkeypatch):
    """They are found before the training."""
    if "bleu" in arguments:
        for name in ("sacrebleu", "sacrebleu.metrics"):
            monkeypatch.setitem(sys.modules, name, None)
    words = [str(files.get(word, word)) for word in arguments.split()]
    out = tmp_path / "run"
    said = refused("train", *words, "--out", out, "--quiet")
    assert message in " ".join(said.split())
    assert len(said) < 1100
    assert not out.exists()


def test_the_folder_of_a_run(run, files, tmp_path):
    assert "Missing option '--out'" in refused("train", "--task", "copy")
    assert "no such folder" in refused("train", "--resume", "--out", tmp_path / "none")
    assert "not the folder of a training run" in refused("train", "--resume", "--out", tmp_path)
    for more in ([], ["--resume"]):
        assert f"{files['good.src']}: is a file" in refused("train", *SMALL, *more, "--out", files["good.src"])
    copy = shutil.copytree(run, tmp_path / "copy")
    before = contents(copy)
    assert "already holds a training run; go on with --resume" in refused("train", "--task", "copy", "--out", copy)
    assert contents(copy) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    """Every option has a text."""
    result = call(command, "--help")
    assert result.exit_code == 0
    for parameter in main.commands[command].params:
        assert parameter.param_type_name == "argument" or (parameter.help and parameter.opts[0] in result.output)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="files that are open have no names here")
def test_text_from_a_pipe(files, tmp_path):
    """As a shell names <(zcat text.gz): it is read once, so that the line of a pair that is too long is not sought."""
    reading, writing = os.pipe()
    with open(reading, "rb"):
        with open(writing, "wb") as pipe:
            pipe.write(files["good.src"].read_bytes())
        good = [files["good.src"], files["good.tgt"]]
        said = refused("train", "--train", f"/dev/fd/{reading}", good[1], "--valid", *good, "--out", tmp_path / "run",
                       "--max-length", 2, "--quiet")
    assert "training pair 1, 'one two', has 3 source tokens" in said
