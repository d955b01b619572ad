"""Training runs of a second: two dozen words to copy, a model of 16 features, and what their folders hold."""

import json
import signal
import zlib
from dataclasses import asdict

import numpy as np
import pytest

from minigrad.checkpoint import load_tensors, save_tensors

from transformer import TransformerConfig
from transformer.data import build_tokenizers
from transformer.data.tasks import get_task
from transformer.training.checkpoints import Run, load_run
from transformer.training.log import Log
from transformer.training.loop import train
from transformer.training.options import TrainingOptions
from transformer.training.run_folder import numbered, pointed
from transformer.training.trainer import Trainer

PAIRS = get_task("copy").pairs("train", 40, seed=1)
VALID = get_task("copy").pairs("valid", 8, seed=1)
TOKENIZERS = build_tokenizers("words", *zip(*PAIRS, strict=True), shared=True)
SIZE = len(TOKENIZERS[0].vocabulary)


def config(**changes):
    """Dropout on, all embeddings tied."""
    options = {"d_model": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "d_ff": 24,
               "dropout": 0.2, "max_length": 16, "share_embeddings": True, "tie_output": True}
    return TransformerConfig(SIZE, SIZE, **{**options, **changes})


def options(**changes):
    """14 updates of two batches each, in epochs of 3 updates, validated after 4, 8, 12 and 14."""
    values = {"steps": 14, "batch_tokens": 64, "accumulate": 2, "learning_rate": 1e-2, "warmup_steps": 4,
              "valid_every": 4, "valid_sentences": 3, "keep": 1}
    return TrainingOptions(**{**values, **changes})


def run(out, resume=False, model=None, train_pairs=PAIRS, valid_pairs=VALID, device="cpu", tokenizers=TOKENIZERS,
        **changes):
    """Train in `out` without drawing curves; `changes` are of the options."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Log, "draw", lambda self, metric: None)
        return train(out, Run(config(**(model or {})), tokenizers, {}, options(**changes)), train_pairs, valid_pairs,
                     device, resume, progress=False)


def new_trainer(out, model=None, train_pairs=PAIRS, valid_pairs=VALID, device="cpu", resume=None, **changes):
    """A trainer that made no step yet, and whose log is begun; or that goes on from the checkpoint `resume`."""
    out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(out, Run(config(**(model or {})), TOKENIZERS, {}, options(**changes)), train_pairs,
                      valid_pairs, device)
    if resume:
        trainer.restore(resume)
    else:
        trainer.log.cut_after(0)
    return trainer


def after_update(patch, action):
    """From now on call ``action(trainer)`` after every update."""
    update = Trainer.update

    def update_and_act(trainer, group):
        update(trainer, group)
        action(trainer)

    patch.setattr(Trainer, "update", update_and_act)


def interrupted(out, step, **changes):
    """A run during whose update `step` somebody presses Ctrl-C."""
    def press(trainer):
        if trainer.progress.step == step:
            signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        after_update(patch, press)
        with pytest.raises(KeyboardInterrupt):
            run(out, **changes)
    return out


def parameters(out, which="latest"):
    """The weights of a checkpoint by name."""
    return load_run(out, which)[1]


def contents(out):
    """Everything that a run leaves, but for the seconds it took: to compare with ``==``."""
    found = {"log": [{k: v for k, v in row.items() if k != "seconds"} for row in Log(out / "log.csv").rows()],
             "numbered": numbered(out)}
    for which in ("latest", "best"):
        found[which] = pointed(out, which)
        described, arrays, moments = load_run(out, which)
        found[f"{which} progress"] = {k: v for k, v in asdict(described.progress).items() if k != "seconds"}
        found[f"{which} run"] = {k: v for k, v in described.to_json().items() if k != "progress"}
        found[f"{which} model"] = bits(arrays)
        found[f"{which} optimizer"] = bits(moments)
    return found


def bits(arrays):
    """Arrays and numbers by name as dtype, shape and bytes."""
    return {name: (str(np.asarray(a).dtype), np.shape(a), np.asarray(a).tobytes()) for name, a in arrays.items()}


def snapshot(out):
    """Every file of a folder as bytes."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def edit_json(path, **changes):
    """Change entries of a run.json, with the checksums of it in the files beside it."""
    text = json.dumps(json.loads(path.read_bytes()) | changes).encode()
    path.write_bytes(text)
    for arrays in path.parent.glob("*.safetensors"):
        save_tensors(arrays, load_tensors(arrays)[0], {"run": f"{zlib.crc32(text):08x}"})
