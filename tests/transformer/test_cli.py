"""The commands: what they print, what they refuse, and how they stop."""

import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from click.testing import CliRunner
from threadpoolctl import threadpool_info

from minigrad import device as devices
from minigrad.checkpoint import load_tensors

import transformer.cli.train
from tests.transformer.digits import PAIRS, SENTENCES, translated
from transformer import TransformerConfig
from transformer.checkpoints import load_run
from transformer.cli import main
from transformer.data import TASKS
from transformer.options import TrainingOptions
from transformer.recipes import RECIPES
from transformer.train import train
from transformer.translator import Translator

ROOT = Path(__file__).parents[2]
COMMANDS = ("train", "translate", "evaluate", "info")
SMALL = ["--task", "copy", "--d-model", 8, "--heads", 2, "--layers", 1, "--d-ff", 8, "--train-count", 60,
         "--valid-count", 5, "--batch-tokens", 100, "--schedule", "constant", "--quiet"]


def call(*arguments, standard_input=None):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=standard_input)


def refused(*arguments, standard_input=None):
    """The one line on standard error of a command that is refused."""
    result = call(*arguments, standard_input=standard_input)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def contents(folder):
    """Every file below a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def files(tmp_path):
    """Text files by name; all have two lines, but for those whose names say otherwise."""
    texts = {"good.src": "one two\nthree\n", "good.tgt": "一 二\n三\n", "short.tgt": "一 二\n", "empty.src": "",
             "blank.src": "\n\n", "long.tgt": "一\n" + "二 " * 300 + "\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "latin.src").write_bytes("one\ndéjà\n".encode("latin-1"))
    return {path.name: path for path in tmp_path.iterdir()} | {"missing.src": tmp_path / "missing.src"}


@pytest.fixture
def begun(monkeypatch):
    """What the training loop is called with, in place of calling it."""
    calls = []

    def training(*arguments, **keywords):
        values = inspect.signature(train).bind(*arguments, **keywords).arguments
        tokenizers = values["source_tokenizer"], values["target_tokenizer"]
        calls.append(types.SimpleNamespace(**values, tokenizers=tokenizers))
        raise KeyboardInterrupt

    monkeypatch.setattr(transformer.cli.train, "run_training", training)
    return calls


# --- Help --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"Usage: main {command}" in result.output
    for parameter in main.commands[command].params:
        if parameter.param_type_name != "argument":
            assert parameter.help, parameter.name
            assert parameter.opts[0] in result.output


def test_help_of_train_is_in_sections_and_has_the_recipes():
    text = call("train", "--help").output
    titles = ["Data (one of --task and --train)", "Model", "Training", "Validation and checkpoints", "Run", "Machine"]
    places = [text.index(f"\n{title}:\n") for title in titles]
    assert places == sorted(places)
    for name in RECIPES:
        assert f"\n    {name} " in text
    for task in TASKS:
        assert task in text


def test_help_shows_defaults():
    text = " ".join(call("translate", "--help").output.split())
    assert "[default: 64; x>=1]" in text
    assert "[default: cpu]" in text


def test_without_a_command_the_help_is_shown():
    result = call()
    assert result.exit_code == 0
    assert all(f"\n  {command} " in result.output for command in COMMANDS)


# --- train: from options to a run --------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_a_task_alone_is_trained_by_its_recipe(begun, tmp_path, task):
    assert call("train", "--task", task, "--out", tmp_path, "--train-count", 300).exit_code == 130
    [run] = begun
    recipe = RECIPES[task]
    assert run.options == recipe.options
    assert run.config == recipe.config(*run.tokenizers)
    assert run.train_pairs == TASKS[task].pairs("train", 300, recipe.options.seed)
    assert run.valid_pairs == TASKS[task].pairs("valid", recipe.valid_count, recipe.options.seed)
    assert {tokenizer.kind for tokenizer in run.tokenizers} == {TASKS[task].tokenizer_kind}
    assert (run.device, run.resume, run.progress) == ("cpu", False, True)
    assert run.data["task"] == task


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--d-model 48 --heads 3 --d-ff 20", {"d_model": 48, "num_heads": 3, "d_ff": 20}),
        ("--layers 3", {"num_encoder_layers": 3, "num_decoder_layers": 3}),
        ("--layers 3 --decoder-layers 1", {"num_encoder_layers": 3, "num_decoder_layers": 1}),
        ("--encoder-layers 4", {"num_encoder_layers": 4, "num_decoder_layers": 2}),
        ("--dropout 0.25 --norm post", {"dropout": 0.25, "norm": "post"}),
        ("--activation gelu --positions learned", {"activation": "gelu", "positions": "learned"}),
        ("--max-length 33 --tie", {"max_length": 33, "tie_output": True}),
        ("--tie --shared-vocab", {"tie_output": True, "share_embeddings": True}),
        ("--config small", {"d_model": 256, "num_encoder_layers": 3, "dropout": 0.1, "max_length": 256}),
        ("--config small --d-model 64", {"d_model": 64, "d_ff": 1024}),
    ],
)
def test_options_of_the_model(begun, tmp_path, arguments, expected):
    call("train", "--task", "copy", "--out", tmp_path, "--train-count", 50, *arguments.split())
    [run] = begun
    assert {name: getattr(run.config, name) for name in expected} == expected


def test_base_is_the_papers_with_one_vocabulary(begun, tmp_path):
    call("train", "--task", "addition", "--config", "base", "--out", tmp_path, "--train-count", 50)
    [run] = begun
    assert run.tokenizers[0] is run.tokenizers[1]
    size = len(run.tokenizers[0].vocabulary)
    assert run.config == TransformerConfig.base(size, size)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--steps 7", {"steps": 7, "epochs": None}),
        ("--epochs 2", {"steps": None, "epochs": 2}),
        ("--epochs 2 --steps 7", {"steps": 7, "epochs": 2}),
        ("--minutes 1.5", {"minutes": 1.5, "steps": RECIPES["copy"].options.steps}),
        ("--batch-tokens 99 --accumulate 3", {"batch_tokens": 99, "accumulate": 3}),
        ("--learning-rate 0.25 --warmup 9 --schedule linear", {"learning_rate": 0.25, "warmup_steps": 9,
                                                              "schedule": "linear"}),
        ("--clip 0", {"clip_norm": None}),
        ("--clip 2.5 --weight-decay 0.1", {"clip_norm": 2.5, "weight_decay": 0.1}),
        ("--label-smoothing 0.2 --adam-beta2 0.9", {"label_smoothing": 0.2, "adam_beta2": 0.9}),
        ("--valid-every 3 --valid-sentences 4 --metric bleu", {"valid_every": 3, "valid_sentences": 4,
                                                              "valid_metric": "bleu"}),
        ("--patience 2 --keep 5 --average 4 --seed 8", {"patience": 2, "keep": 5, "average": 4, "seed": 8}),
    ],
)
def test_options_of_the_training(begun, tmp_path, arguments, expected):
    call("train", "--task", "copy", "--out", tmp_path, "--train-count", 50, *arguments.split())
    [run] = begun
    assert {name: getattr(run.options, name) for name in expected} == expected
    assert run.train_pairs == TASKS["copy"].pairs("train", 50, run.options.seed)


@pytest.mark.parametrize("kind", ["words", "characters", "bpe"])
def test_text_files(begun, files, tmp_path, kind):
    call("train", "--train", files["good.src"], files["good.tgt"], "--valid", files["good.src"], files["good.tgt"],
         "--out", tmp_path / "run", "--tokens", kind, "--vocab-size", 262)
    [run] = begun
    assert run.train_pairs == run.valid_pairs == [("one two", "一 二"), ("three", "三")]
    assert [tokenizer.kind for tokenizer in run.tokenizers] == [kind, kind]
    assert all(len(tokenizer.vocabulary) <= 262 for tokenizer in run.tokenizers)
    assert run.config == RECIPES["text"].config(*run.tokenizers)
    assert run.options == RECIPES["text"].options


def test_threads_are_limited_while_the_command_runs(monkeypatch, tmp_path):
    seen = []

    def training(*arguments, **keywords):
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        raise KeyboardInterrupt

    monkeypatch.setattr(transformer.cli.train, "run_training", training)
    before = [pool["num_threads"] for pool in threadpool_info()]
    call("train", *SMALL, "--out", tmp_path, "--threads", 1)
    assert seen == [1] * len(before)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


# --- train: whole runs -------------------------------------------------------------------------------------


def test_a_resumed_run_with_more_steps_ends_where_a_longer_one_does(tmp_path):
    result = call("train", *SMALL, "--steps", 4, "--valid-every", 2, "--out", tmp_path / "parts")
    assert result.exit_code == 0, result.output
    assert "4 steps" in result.stdout
    assert f"python -m transformer translate {tmp_path / 'parts'}" in result.stdout
    assert call("train", "--out", tmp_path / "parts", "--resume", "--steps", 7, "--quiet").exit_code == 0
    assert call("train", *SMALL, "--steps", 7, "--valid-every", 2, "--out", tmp_path / "whole").exit_code == 0
    parts, whole = (load_run(tmp_path / name, "latest")[1] for name in ("parts", "whole"))
    assert parts.keys() == whole.keys()
    assert all((parts[name] == whole[name]).all() for name in whole)
    rows = (tmp_path / "parts" / "log.csv").read_text(encoding="utf-8").splitlines()
    assert [row.partition(",")[0] for row in rows] == ["step", "2", "4", "6", "7"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("--d-model 16", "--d-model"),
        ("--layers 2", "--encoder-layers, --decoder-layers"),
        ("--task reverse", "--task"),
        ("--seed 4 --batch-tokens 9", "--batch-tokens, --seed"),
        ("--config base", "--config"),
        ("--tokens characters --shared-vocab", "--tokens, --shared-vocab"),
        ("--train a b --valid c d", "--train, --valid"),
        ("--schedule cosine", "--schedule"),
    ],
)
def test_a_resumed_run_keeps_its_options(begun, small_run, arguments, named):
    before = contents(small_run)
    assert f"may not change {named};" in refused("train", "--resume", "--out", small_run, *arguments.split())
    assert begun == []
    assert contents(small_run) == before


@pytest.mark.parametrize(
    "arguments",
    ["--task copy --seed 1 --d-model 8 --layers 1", "--minutes 9 --patience 5 --keep 9 --average 2 --steps 99",
     "--valid-every 7 --valid-sentences 3 --epochs 2"],
)
def test_a_resumed_run_may_be_told_its_options_and_change_some(begun, small_run, arguments):
    assert call("train", "--resume", "--out", small_run, *arguments.split()).exit_code == 130
    [run] = begun
    assert run.resume
    words = arguments.split()
    given = dict(zip([word[2:].replace("-", "_") for word in words[::2]], words[1::2], strict=True))
    stored = TrainingOptions.from_json(load_run(small_run)[0].training)
    for name in TrainingOptions.MAY_CHANGE:
        if name in given:
            assert getattr(run.options, name) == float(given[name]) != getattr(stored, name)


def test_a_resumed_run_needs_the_data_it_began_with(files, tmp_path):
    """The files may move; what is in them may not change."""
    text = [files["good.src"], files["good.tgt"]]
    sizes = ["--steps", 1, "--d-model", 8, "--heads", 2, "--d-ff", 8, "--layers", 1, "--schedule", "constant"]
    out = tmp_path / "run"
    assert call("train", "--train", *text, "--valid", *text, *sizes, "--quiet", "--out", out).exit_code == 0
    moved = [path.rename(tmp_path / f"moved{path.suffix}") for path in text]
    before = contents(out)
    assert "cannot read" in refused("train", "--resume", "--out", out)
    resume = ["train", "--resume", "--out", out, "--train", *moved, "--valid", *moved, "--steps", 2, "--quiet"]
    right = moved[1].read_text(encoding="utf-8")
    moved[1].write_text(right.replace("三", "二"), encoding="utf-8")
    assert "this run began with" in refused(*resume)
    assert contents(out) == before
    moved[1].write_text(right, encoding="utf-8")
    assert call(*resume).exit_code == 0
    assert load_run(out, "latest")[0].data["train"] == [str(path) for path in moved]


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """A run of two steps on the task copy. Nobody changes it."""
    folder = tmp_path_factory.mktemp("small") / "run"
    result = call("train", *SMALL, "--steps", 2, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


# --- train: mistakes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give one of --task NAME and --train SRC TGT --valid SRC TGT"),
        ("--task copy --train good.src good.tgt", "give one of --task NAME and --train SRC TGT"),
        ("--train good.src good.tgt", "--train and --valid belong together"),
        ("--task copy --valid good.src good.tgt", "--train and --valid belong together"),
        ("--task chess", "'chess' is not one of 'copy', 'reverse', 'sort', 'addition', 'dates'"),
        ("--task copy --d-model 64 --heads 5", "d_model (64) must be a multiple of num_heads (5)"),
        ("--task copy --d-model 7 --heads 7", "even d_model"),
        ("--task copy --steps -3", "-3 is not in the range x>=1"),
        ("--task copy --learning-rate 0", "0.0 is not in the range x>0"),
        ("--task copy --dropout 1", "1.0 is not in the range 0<=x<1"),
        ("--task copy --seed -1", "-1 is not in the range x>=0"),
        ("--task copy --step", "--steps"),
        ("--task copy --no-such-option", "No such option"),
        ("--task copy --steps many", "'many' is not a valid integer"),
        ("--task copy --device tpu", "unknown device 'tpu'; use 'cpu', 'cuda' or 'cuda:N'"),
        ("--task copy --vocab-size 3", "max_size=3 has no room for the 4 specials"),
        ("--task copy --tokens bpe --vocab-size 200", "size=200 is too small"),
        ("--task copy --max-length 5 --steps 1", "5 positions"),
        ("--task copy extra", "unexpected extra argument"),
        ("--train missing.src good.tgt --valid good.src good.tgt", "cannot read"),
        ("--train good.src good.tgt --valid good.src missing.src", "missing.src"),
        ("--train good.src short.tgt --valid good.src good.tgt", "has 2 lines"),
        ("--train good.src good.tgt --valid empty.src empty.src", "empty.src is empty"),
        ("--train blank.src blank.src --valid good.src good.tgt", "blank.src is empty"),
        ("--train latin.src good.tgt --valid good.src good.tgt", "latin.src, line 2: not valid UTF-8 (byte 0xe9)"),
        ("--train good.src long.tgt --valid good.src good.tgt", "301 target tokens"),
        ("--train good.src good.tgt --valid good.src long.tgt", "301 target tokens"),
        ("--train good.src good.tgt --valid good.src good.tgt --train-count 9", "files are used whole"),
    ],
)
def test_mistakes_in_training(files, tmp_path, arguments, message):
    words = [str(files.get(word, word)) for word in arguments.split()]
    out = tmp_path / "run"
    assert message in " ".join(refused("train", *words, "--out", out, "--quiet").split())
    assert not (out / "latest").exists()


def test_an_out_folder_is_needed():
    assert "Missing option '--out'" in refused("train", "--task", "copy")


def test_a_run_is_not_overwritten(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    before = contents(copy)
    assert "already holds a training run; go on with --resume" in refused("train", "--task", "copy", "--out", copy)
    assert contents(copy) == before


def test_only_a_run_can_be_resumed(tmp_path):
    assert "no such folder" in refused("train", "--resume", "--out", tmp_path / "none")
    assert "not the folder of a training run" in refused("train", "--resume", "--out", tmp_path)


def test_out_is_a_file(files):
    message = refused("train", *SMALL, "--steps", 1, "--out", files["good.src"])
    assert str(files["good.src"]) in message


def test_without_an_extra_its_name_is_given(monkeypatch, tmp_path):
    for name in ("sacrebleu", "sacrebleu.metrics"):
        monkeypatch.setitem(sys.modules, name, None)
    message = refused("train", *SMALL, "--metric", "bleu", "--out", tmp_path / "run")
    assert "pip install 'minigrad[data]'" in message
    assert not (tmp_path / "run").exists()  # it was found before the training


# --- --device cuda without a GPU ---------------------------------------------------------------------------


def broken_cupy(error):
    """A module like a CuPy that can be imported, where the first question to the driver ends in `error`."""

    class RuntimeProblem(RuntimeError):
        pass

    def count():
        if error is None:
            return 0
        raise error

    runtime = types.SimpleNamespace(CUDARuntimeError=RuntimeProblem, getDeviceCount=count)
    module = types.ModuleType("cupy")
    compiler = types.SimpleNamespace(CompileException=RuntimeProblem)
    module.cuda = types.SimpleNamespace(runtime=runtime, compiler=compiler)
    return module


@pytest.mark.parametrize("command", ["train", "translate", "evaluate"])
@pytest.mark.parametrize(
    ("cupy", "message"),
    [
        (None, "CuPy is not installed, and cuda devices need it: pip install 'minigrad[cuda12]'"),
        (broken_cupy(None), "CuPy is installed, but there is no usable GPU: the driver reports no device"),
        (broken_cupy(OSError("libcublas.so.12: not found")), "a library it needs is missing: libcublas.so.12"),
    ],
    ids=["no CuPy", "no GPU", "no library"],
)
def test_without_a_gpu(monkeypatch, run, tmp_path, command, cupy, message):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(devices, "_cuda_module", None)
    arguments = [*SMALL, "--out", tmp_path / "run"] if command == "train" else [run]
    assert message in refused(command, *arguments, "--device", "cuda")
    assert not (tmp_path / "run").exists()


def test_on_the_stand_in_everything_runs(stand_in, tmp_path):
    folder = tmp_path / "run"
    result = call("train", *SMALL, "--steps", 1, "--out", folder, "--device", "cuda")
    assert result.exit_code == 0, result.output
    assert call("translate", folder, "--device", "cuda:1", standard_input="a b\n").stdout.count("\n") == 1
    assert json.loads(call("evaluate", folder, "--count", 2, "--device", "cuda").stdout)["sentences"] == 2


# --- translate ---------------------------------------------------------------------------------------------


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
        ("--alpha -1", "-1.0 is not in the range x>=0"),
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


# --- evaluate, info ----------------------------------------------------------------------------------------


@pytest.fixture
def numbers(tmp_path):
    """The pairs that the model was trained on, as options."""
    for side, name in enumerate(("source", "target")):
        text = "\n".join(pair[side] for pair in PAIRS)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return ["--source", tmp_path / "source", "--target", tmp_path / "target"]


def test_evaluate_prints_one_json_object(run, numbers):
    result = call("evaluate", run, *numbers, "--beam", 2)
    assert result.exit_code == 0
    assert result.stderr == ""
    values, expected = json.loads(result.stdout), Translator.load(run).evaluate(PAIRS, beam=2)
    assert list(values) == ["exact_match", "token_accuracy", "loss", "bleu", "bleu_signature", "sentences", "seconds"]
    assert values | {"seconds": 0} == expected | {"seconds": 0}
    assert values["exact_match"] == 1.0


def test_evaluate_on_the_task_itself(small_run):
    result = call("evaluate", small_run, "--count", 6, "--seed", 3)
    values = json.loads(result.stdout)
    expected = Translator.load(small_run).evaluate(TASKS["copy"].pairs("test", 6, seed=3))
    assert values | {"seconds": 0} == expected | {"seconds": 0}


def test_mistakes_in_evaluating(run, files):
    assert "give both files, or none" in refused("evaluate", run, "--source", files["good.src"])
    assert "give --source and --target" in refused("evaluate", run)
    for source, target, message in (
        ("missing.src", "good.tgt", "cannot read"), ("good.src", "short.tgt", "has 2 lines"),
        ("empty.src", "good.tgt", "is empty"), ("latin.src", "good.tgt", "line 2: not valid UTF-8"),
        ("good.src", "long.tgt", "'three' has 301 target tokens"),
    ):
        assert message in refused("evaluate", run, "--source", files[source], "--target", files[target])


def test_evaluate_without_sacrebleu_says_so(monkeypatch, run, numbers):
    for name in ("sacrebleu", "sacrebleu.metrics"):
        monkeypatch.setitem(sys.modules, name, None)
    result = call("evaluate", run, *numbers)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["bleu"] is None
    assert "pip install 'minigrad[data]'" in result.stderr


def test_info(run):
    result = call("info", run)
    assert result.exit_code == 0
    arrays, _ = load_tensors(next((run / "checkpoints").iterdir()) / "model.safetensors")
    assert f"{sum(array.size for array in arrays.values()):,} parameters" in result.stdout
    words = {tuple(line.split(None, 1)) for line in result.stdout.splitlines()}
    assert {("d_model", "32"), ("max_length", "8"), ("source", "7 words"), ("steps", "120"), ("step", "120"),
            ("train", "a, b"), ("patience", "-"), ("tie_output", "no")} <= words


# --- Processes: the terminal, pipes, Ctrl-C ----------------------------------------------------------------


def start(*arguments, **pipes):
    command = [sys.executable, "-m", "transformer", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | pipes
    return subprocess.Popen(command, env=environment, **pipes)


@pytest.mark.skipif(sys.platform == "win32", reason="terminals and signals of POSIX")
def test_on_a_terminal_there_is_a_prompt_and_an_answer_to_each_line(run):
    import pty

    controller, terminal = pty.openpty()
    process = start("translate", run, stdin=terminal)
    os.close(terminal)
    os.write(controller, b"one two\n")
    assert process.stdout.readline() == "一 二\n".encode()  # before the input ends
    os.write(controller, b"two " * 9 + b"\n")  # a mistake, and the session goes on
    os.write(controller, b"three\n\x04")
    output, errors = process.communicate(timeout=60)
    os.close(controller)
    assert (process.returncode, output) == (0, "三\n".encode())
    lines = errors.decode().split("> ")
    assert len(lines) == 5  # four prompts: the last is ended by Ctrl-D
    assert lines[2].startswith("line 2: 10 tokens with end-of-sentence")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals and signals of POSIX")
def test_a_reader_that_stops_reading_is_no_error(run):
    with start("translate", run, "--batch-size", 1) as process:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "一\n".encode()
        process.stdout.close()
        process.stdin.write(b"two\n" * 3)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="terminals and signals of POSIX")
def test_ctrl_c_ends_a_translation_quietly(run):
    process = start("translate", run, "--batch-size", 1)
    process.stdin.write(b"one\n")
    process.stdin.flush()
    process.stdout.readline()  # it is now waiting for the next line
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.strip()) == (130, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals and signals of POSIX")
def test_ctrl_c_saves_the_training_and_says_how_to_go_on(tmp_path):
    folder = tmp_path / "a run"
    process = start("train", *SMALL, "--steps", 100_000, "--valid-every", 2, "--out", folder)
    while not (folder / "latest").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"stopped; go on with  python -m transformer train --out '{folder}' --resume" in errors.decode()
    assert "Traceback" not in errors.decode()

    reached = load_run(folder, "latest")[0].progress["step"]
    result = call("train", "--out", folder, "--resume", "--steps", reached + 2, "--quiet")
    assert result.exit_code == 0, result.output
    assert load_run(folder, "latest")[0].progress["step"] == reached + 2


def test_ctrl_c_before_the_first_checkpoint(begun, tmp_path):
    result = call("train", *SMALL, "--out", tmp_path / "run")
    assert result.exit_code == 130
    assert result.stderr.endswith("stopped; there is no checkpoint yet\n")
