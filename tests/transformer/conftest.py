"""A small trained model, made once, that translates the sentences of `digits` without a mistake."""

from pathlib import Path

import pytest

from tests.transformer.digits import PAIRS
from transformer import TransformerConfig
from transformer.data import build_tokenizers
from transformer.options import TrainingOptions
from transformer.train import train


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of its run. Tests that change something work on a copy."""
    folder = tmp_path_factory.mktemp("runs") / "digits"
    tokenizers = build_tokenizers("words", *zip(*PAIRS, strict=True))
    config = TransformerConfig.tiny(7, 7, d_model=32, d_ff=64, num_encoder_layers=1, num_decoder_layers=1, dropout=0.0,
                                    max_length=8)
    options = TrainingOptions(steps=120, batch_tokens=1000, learning_rate=1e-2, warmup_steps=10, schedule="linear",
                              label_smoothing=0.0, valid_every=120)
    data = {"train": ["a", "b"], "valid": ["c", "d"]}
    train(folder, config, *tokenizers, PAIRS, PAIRS[:3], options, data, progress=False)
    return folder
