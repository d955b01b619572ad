"""``train``: from options to a run, and what is refused, in one line."""

import contextlib
import gzip
import io
import shlex
import shutil
import sys
from dataclasses import replace

import pytest

from tests.transformer.commands import SMALL, call, contents, refused
from transformer.data import TASKS, WordTokenizer, load_tokenizer
from transformer.training.recipes import RECIPES, model_config, training_options


def test_a_task_alone_is_trained_by_its_recipe(begun, tmp_path):
    task = "addition"
    assert call("train", "--task", task, "--out", tmp_path, "--train-count", 300).exit_code == 130
    [run] = begun
    recipe = RECIPES[task]
    assert run.options == replace(training_options(recipe), threads=1)
    assert run.config == model_config(recipe, *run.tokenizers)
    assert run.train_pairs == TASKS[task].pairs("train", 300, run.options.seed)
    assert run.valid_pairs == TASKS[task].pairs("valid", recipe["valid_count"], run.options.seed)
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
    ("--minutes 1.5", {"minutes": 1.5, "steps": RECIPES["copy"]["steps"]}),
    ("--clip 0 --warmup 9 --metric bleu", {"clip_norm": 0.0, "warmup_steps": 9, "valid_metric": "bleu"}),
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
    assert list(run.train_pairs) == list(run.valid_pairs) == [("one two", "一 二"), ("three", "三")]
    assert [tokenizer.kind for tokenizer in run.tokenizers] == [kind, kind]
    assert all(len(tokenizer.vocabulary) <= 262 for tokenizer in run.tokenizers)
    assert run.tokenizers[0] is not run.tokenizers[1], "the scripts differ"


PAIRS = [(f"{a} {b} and {c}", f"{c} et {b} {a}") for a in "abcdefghij" for b in ("un", "dos") for c in ("xy", "zy!")]


@pytest.fixture
def table(tmp_path):
    """40 pairs, and a column that nobody reads."""
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\tCC BY\n" for source, target in PAIRS), encoding="utf-8")
    return path


def announced(begun):
    """What a training says before its first update."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        begun[0].started()
    return said.getvalue()


def test_text_alone_is_trained_by_a_plan_that_gives_it_again(begun, table, tmp_path):
    """A part is held out, what is given stays, and the command that is printed sets the same options."""
    given = ["--train", table, "--minutes", 2, "--dropout", 0.25, "--heads", 4]
    call("train", *given, "--out", tmp_path / "run")
    [run] = begun
    lines = dict(line.split(None, 1) for line in announced(begun).splitlines())
    assert sorted([*run.train_pairs, *run.valid_pairs]) == sorted(PAIRS)
    assert (run.options.minutes, run.config.dropout, run.config.num_heads) == (2.0, 0.25, 4)
    assert run.config.share_embeddings
    command = shlex.split(lines["the"].removeprefix("same"))
    assert command[:4] == ["python", "-m", "transformer", "train"]
    call(*command[3:])
    again = begun[1]
    assert (again.config, again.options, again.data) == (run.config, run.options, run.data)


@pytest.mark.parametrize("form", ["gzip", "standard input", "two files"])
def test_the_forms_of_text(form, begun, table, tmp_path):
    paths, stdin = [table], None
    if form == "gzip":
        paths = [tmp_path / "pairs"]
        paths[0].write_bytes(gzip.compress(table.read_bytes()))
    elif form == "standard input":
        paths, stdin = ["-"], table.read_bytes()
    else:
        paths = [tmp_path / "a", tmp_path / "b"]
        for path, side in zip(paths, zip(*PAIRS, strict=True), strict=True):
            path.write_text("\n".join(side), encoding="utf-8")
    call("train", "--train", *paths, "--steps", 3, "--out", tmp_path / "run", standard_input=stdin)
    assert sorted([*begun[0].train_pairs, *begun[0].valid_pairs]) == sorted(PAIRS)


def test_tokenizers_from_files(begun, table, tmp_path):
    """Those of another run, in the form of Hugging Face."""
    sides = zip(*PAIRS, strict=True)
    file = tmp_path / "tokenizer.json"
    file.write_text(WordTokenizer.train([text for side in sides for text in side]).to_hugging_face(), encoding="utf-8")
    call("train", "--train", table, "--source-tokenizer", file, "--steps", 3, "--out", tmp_path / "run")
    source, target = begun[0].tokenizers
    assert source.encode("un dos xy") == load_tokenizer(file).encode("un dos xy")
    assert target.kind == "bpe"


def test_what_is_left_out_and_what_is_doubtful_is_said(begun, table, tmp_path):
    rows = [*PAIRS, ("x", ""), ("long " * 300, "y"), ("way !", "way !"), ("new way!", "new way!")]
    table.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    valid = tmp_path / "valid.tsv"
    valid.write_text("way way!\tway way!\na un and xy\txy et un a\nnew! thing\tthing\n", encoding="utf-8")
    call("train", "--train", table, "--valid", valid, "--tokens", "words", "--steps", 3, "--out", tmp_path / "run")
    said = announced(begun)
    assert "left out: 1 with an empty side, 1 of more than 256 tokens" in said
    assert "1 of these pairs also stand in training" in said
    assert "42 pairs are too few" in said
    assert "'new!'" in said
    assert "all validation pairs" not in said


def test_text_that_validates_itself_is_told_so_and_one_pair_is_one(begun, tmp_path):
    table = tmp_path / "one.tsv"
    table.write_text("a b\tb a\n", encoding="utf-8")
    call("train", "--train", table, "--valid", table, "--tokens", "words", "--steps", 3, "--out", tmp_path / "run")
    said = announced(begun)
    assert "note: all validation pairs also stand in training" in said
    assert "text      1 pair: " in said
    assert "1 pair is too few" in said


GOOD = "good.src good.tgt"


@pytest.mark.parametrize(("arguments", "message"), [
    ("", "give one of --task NAME and --train SRC TGT"),
    ("--train", "Option '--train' requires an argument."),
    ("--train good.src good.tgt --valid", "Option '--valid' requires an argument."),
    ("--train good.src", "good.src, line 1: no tab between a source and a target"),
    ("--train good.src good.tgt good.src", "--train takes one table, or two files"),
    ("--train - -", "standard input"),
    (f"--train {GOOD} --valid - --quiet", "standard input is empty"),
    ("--train good.src good.src", "source and target are the same file"),
    ("--train short.tgt short.tgt2", "none can be held out"),
    ("--task copy --train-count 9 --d-model 64 --heads 5", "d_model (64)"),
    ("--task copy --learning-rate nan", "'--learning-rate': nan"),
    ("--task copy --device tpu", "unknown device 'tpu'"),
    ("--task copy --tokens bpe --vocab-size 200", "size=200 is too small; the 256 bytes"),
    ("--task copy --train-count 99 --max-length 5 --steps 1", "raise --max-length"),
    ("--task copy --train-count 9 --metric bleu", "pip install 'minigrad-transformer[data]'"),
    (f"--task copy --steps {10**30}", "is not in the range"),
    (f"--task copy --layers {10**9}", "out of memory (the model takes more than"),
    (f"--task copy --max-length {10**11} --train-count 9", "out of memory (the model takes more than"),
    (f"--task copy --train-count 9 --no-such-option{'x' * 10**5}", "No such option"),
    (f"--train missing.src good.tgt --valid {GOOD}", "missing.src"),
    (f"--train latin.src good.tgt --valid {GOOD}", "latin.src, line 2"),
    (f"--train {GOOD} --valid {GOOD} --max-length 1", "no pair of the training text has at most 1 tokens a side"),
    (f"--train {GOOD} --source-tokenizer good.src", "good.src is not a tokenizer.json"),
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


@pytest.mark.parametrize("package", ["tokenizers", "sacrebleu"])
def test_a_package_that_text_needs_is_named_before_anything_is_read(package, tmp_path, monkeypatch):
    for name in (package, "sacrebleu.metrics"):
        monkeypatch.setitem(sys.modules, name, None)
    assert f"the package '{package}'" in refused("train", "--train", "missing.tsv", "--out", tmp_path / "run")


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
