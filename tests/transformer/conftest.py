"""A small trained model, made once, that translates the sentences of `digits` without a mistake; what commands get."""

import inspect
import shutil
import types

import pytest

import transformer.cli.train
from tests.transformer import runs
from tests.transformer.commands import SMALL, call
from tests.transformer.digits import PAIRS
from transformer import TransformerConfig
from transformer.data import build_tokenizers
from transformer.training.checkpoints import Run
from transformer.training.loop import train
from transformer.training.options import TrainingOptions


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The folder of its run. Tests that change something work on a copy."""
    folder = tmp_path_factory.mktemp("runs") / "digits"
    tokenizers = build_tokenizers("words", *zip(*PAIRS, strict=True))
    config = TransformerConfig.tiny(7, 7, d_model=32, d_ff=64, num_encoder_layers=1, num_decoder_layers=1, dropout=0.0,
                                    max_length=8)
    options = TrainingOptions(steps=120, batch_tokens=1000, learning_rate=1e-2, warmup_steps=10, schedule="cosine",
                              label_smoothing=0.0, valid_every=120)
    data = {"train": ["a", "b"], "valid": ["c", "d"]}
    train(folder, Run(config, tokenizers, data, options), PAIRS, PAIRS[:3], progress=False)
    return folder


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """A run of two steps on the task copy. Nobody changes it."""
    folder = tmp_path_factory.mktemp("small") / "run"
    result = call("train", *SMALL, "--steps", 2, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def files(tmp_path):
    """Text files by name, of two lines; one is not there."""
    texts = {"good.src": "one two\nthree\n", "good.tgt": "一 二\n三\n"}
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
        calls.append(types.SimpleNamespace(**vars(values["run"]) | values))
        raise KeyboardInterrupt

    monkeypatch.setattr(transformer.cli.train, "run_training", training)
    return calls


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of 6 updates with checkpoints after 4 and 6. Nobody changes it."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    runs.run(out, steps=6, schedule="constant", keep=3)
    return out


@pytest.fixture
def out(finished, tmp_path):
    """A copy."""
    return shutil.copytree(finished, tmp_path / "run")
