"""``train``: from options to a run."""

import contextlib
import gzip
import io
import shlex
from dataclasses import replace

import pytest

from tests.transformer.commands import call
from transformer.data import TASKS, WordTokenizer
from transformer.training.recipes import RECIPES, model_config, training_options


def test_a_task_alone_is_trained_by_its_recipe(begun, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    task = "addition"
    assert call("train", "--task", task, "--out", tmp_path, "--train-count", 300).exit_code == 130
    [run] = begun
    recipe = RECIPES[task]
    assert run.options == replace(training_options(recipe), threads=1)
    assert run.config == model_config(recipe, *run.tokenizers)
    for split, found, count in (("train", run.train_pairs, 300), ("valid", run.valid_pairs, recipe["valid_count"])):
        assert found == TASKS[task].pairs(split, count, run.options.seed)
    assert (run.tokenizers[0].kind, run.data["task"]) == (TASKS[task].tokenizer_kind, task)


@pytest.mark.parametrize(("arguments", "expected"), [
    ("--layers 3 --decoder-layers 1 --dropout 0.25 --norm post --max-length 33 --tie --shared-vocab",
     {"num_encoder_layers": 3, "num_decoder_layers": 1, "dropout": 0.25, "norm": "post", "max_length": 33,
      "tie_output": True, "share_embeddings": True}),
    ("--config small --d-model 64", {"d_model": 64, "d_ff": 1024, "num_encoder_layers": 3, "dropout": 0.0,
                                     "max_length": 64}),
    ("--config base", {"d_model": 512, "dropout": 0.0, "max_length": 64, "share_embeddings": True}),
    ("--epochs 2", {"steps": None, "epochs": 2}),
    ("--epochs 2 --steps 7", {"steps": 7, "epochs": 2}),
    ("--minutes 1.5", {"minutes": 1.5, "steps": RECIPES["copy"]["steps"]}),
    ("--clip 0 --warmup 9 --metric bleu", {"clip_norm": 0.0, "warmup_steps": 9, "valid_metric": "bleu"}),
])
def test_options(begun, tmp_path, arguments, expected):
    call("train", "--task", "copy", "--out", tmp_path, "--train-count", 50, *arguments.split())
    [run] = begun
    found = vars(run.config) | vars(run.options)
    assert found == found | expected


PAIRS = [(f"{a} {b} and {c}", f"{c} et {b} {a}") for a in "abcdefghij" for b in ("un", "dos") for c in ("xy", "zy!")]


def announced(begun):
    """What a training says before its first update."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        begun[0].started()
    return said.getvalue()


def test_text_alone_is_trained_by_a_plan_that_gives_it_again(begun, tmp_path):
    """A part is held out, what is given stays, and the command that is printed sets the same options."""
    (tmp_path / "table").write_bytes(TABLE)
    given = ["--train", tmp_path / "table", "--minutes", 2, "--dropout", 0.25, "--heads", 4]
    call("train", *given, "--out", tmp_path / "a run")
    [run] = begun
    lines = dict(line.split(None, 1) for line in announced(begun).splitlines())
    assert (run.options.minutes, run.config.dropout, run.config.num_heads) == (2.0, 0.25, 4)
    command = shlex.split(lines["the"].removeprefix("same"))
    assert command[-2:] == ["--out", str(tmp_path / "a run")]
    call(*command[command.index("train"):])
    assert (begun[1].config, begun[1].options, begun[1].data) == (run.config, run.options, run.data)


LINES = ["".join(f"{cell}\n" for cell in side) for side in zip(*PAIRS, strict=True)]
TABLE = "".join(f"{source}\t{target}\tCC BY\n" for source, target in PAIRS).encode()  # with a column that nobody reads
TOKENIZER = WordTokenizer.train([source for source, _ in PAIRS]).to_hugging_face()
FORMS = {  # files, options, and the kinds of tokenizers
    "standard input": ({}, "--train - --tokens words", "words words"),
    "two files": ({"a": LINES[0].encode(), "b": LINES[1].encode()}, "--train a b --tokens characters",
                  "characters characters"),
    "gzip, its validation, a tokenizer": (
        {"a": gzip.compress(TABLE), "json": TOKENIZER.encode()},
        "--train a --valid a --source-tokenizer json --tokens bpe", "hugging-face bpe"),
}


@pytest.mark.parametrize(("files", "command", "kinds"), FORMS.values(), ids=FORMS)
def test_the_forms_of_text(files, command, kinds, begun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    call("train", *command.split(), "--vocab-size", 262, "--steps", 3, "--out", "run", standard_input=TABLE)
    [run] = begun
    both = [*run.train_pairs, *run.valid_pairs]
    assert sorted({*both}) == sorted(PAIRS)
    assert len(both) == len(PAIRS) * (1 + ("--valid" in command))
    assert [(t.kind, len(t.vocabulary) <= 262) for t in run.tokenizers] == [(kind, True) for kind in kinds.split()]


ODD = [*PAIRS, ("x", ""), ("long " * 300, "y"), ("way !", "way !"), ("new way!", "new way!")]


def test_what_is_left_out_and_what_is_doubtful_is_said(begun, tmp_path):
    valid = [("way way!", "way way!"), ("a un and xy", "xy et un a"), ("new! thing", "thing")]
    for name, pairs in (("train", ODD), ("valid", valid)):
        (tmp_path / name).write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    call("train", "--train", tmp_path / "train", "--valid", tmp_path / "valid", "--tokens", "words", "--steps", 3,
         "--out", tmp_path / "run")
    said = announced(begun)
    for text in ("left out: 1 with an empty side, 1 of more than 256 tokens", "1 of these pairs also stand in training",
                 "42 pairs are too few", "--tokens bpe knows all"):
        assert text in said
