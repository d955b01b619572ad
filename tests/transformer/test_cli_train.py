"""``train``: from options to a run."""

from dataclasses import replace

import pytest

from tests.transformer.commands import call
from transformer import TransformerConfig
from transformer.data import TASKS
from transformer.training.recipes import RECIPES


@pytest.mark.parametrize("task", TASKS)
def test_a_task_alone_is_trained_by_its_recipe(begun, tmp_path, task):
    assert call("train", "--task", task, "--out", tmp_path, "--train-count", 300).exit_code == 130
    [run] = begun
    recipe = RECIPES[task]
    assert run.options == replace(recipe.options, threads=1)
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
        ("--config small", {"d_model": 256, "num_encoder_layers": 3, "dropout": 0.0, "max_length": 64}),
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
    recipe = RECIPES["addition"].model
    assert run.config == TransformerConfig.base(size, size, dropout=recipe["dropout"], max_length=recipe["max_length"])


@pytest.mark.parametrize("preset", ["tiny", "small", "base"])
def test_a_preset_keeps_the_rest_of_the_recipe(begun, files, tmp_path, preset):
    text = [files["good.src"], files["good.tgt"]]
    call("train", "--train", *text, "--valid", *text, "--config", preset, "--out", tmp_path / "run")
    [run] = begun
    sizes = getattr(TransformerConfig, preset)(9, 9)
    assert run.config.tie_output  # the recipe's
    for name in ("d_model", "num_heads", "num_encoder_layers", "num_decoder_layers", "d_ff", "norm"):
        assert getattr(run.config, name) == getattr(sizes, name)


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
        ("--threads 3", {"threads": 3}),
        ("--micro-batches 4 --precision float16", {"micro_batches": 4, "precision": "float16"}),
        ("", {"micro_batches": 1, "precision": "float32"}),
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
    assert replace(run.options, threads=None) == RECIPES["text"].options
