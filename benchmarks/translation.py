"""A translator trained by PyTorch as a run was: its text, vocabulary, batches, schedule, minutes and validations.

    python -m transformer train --train pairs.tsv --minutes 5 --out runs/fr
    python benchmarks/translation.py runs/fr

PyTorch's model is the one of peers/torch_training.py. It begins with the weights with which the run began, and the best
of its weights are validated and scored by our own beam search, on the run's validation text.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import click
import torch
from peers.torch_training import TransformerByHand, prepare
from torch.nn import functional as F
from workloads import POSITIONS, Workload

from transformer.cli.prepare import take_up
from transformer.data.batches import collate
from transformer.interop import load_pytorch, to_pytorch
from transformer.model import sinusoid
from transformer.training.checkpoints import Validation, load_run
from transformer.training.loop import ALPHAS, limits_reached
from transformer.training.memory import keep_freed_memory
from transformer.training.trainer import Trainer


def counterpart(trainer: Trainer) -> TransformerByHand:
    """PyTorch's model with the weights of the trainer's, and what is tied there tied."""
    config = trainer.run.config
    size = max(config.source_vocab_size, config.target_vocab_size)
    model = TransformerByHand(Workload("run", size, config.d_model, config.num_heads, config.d_ff,
                                       config.num_encoder_layers, 1, config.max_length, config.dropout, padded=True))
    source, target = model.encoder.embedding["table"], model.decoder.embedding["table"]
    for table, rows in ((source, config.source_vocab_size), (target, config.target_vocab_size),
                        (model.projection, config.target_vocab_size)):
        table.weight = torch.nn.Parameter(table.weight[:rows].detach())
    if config.share_embeddings:
        target.weight = source.weight
    if config.tie_output:
        model.projection.weight = target.weight
    state = {name: torch.from_numpy(tensor.numpy().copy()) for name, tensor in to_pytorch(trainer.model).items()}
    state.setdefault("projection.weight", state["decoder.embedding.table.weight"])
    table = sinusoid(config.max_length, config.d_model).astype("float32")
    model.load_state_dict(state | {POSITIONS: torch.from_numpy(table)})
    return model


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--threads", default=2, show_default=True)
def main(folder: Path, threads: int) -> None:
    """Train PyTorch's counterpart of the run in FOLDER, and print what it has reached."""
    torch.set_num_threads(threads)
    keep_freed_memory()  # as our own training does
    prepared = take_up(folder, load_run(folder, "latest")[0], {})
    torch.manual_seed(prepared.run.options.seed)
    with tempfile.TemporaryDirectory() as out:
        trainer = Trainer(Path(out), prepared.run, prepared.train, prepared.valid, "cpu")
    options, progress, model = trainer.options, trainer.progress, counterpart(trainer)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, options.adam_beta2), eps=1e-9,
                                  weight_decay=options.weight_decay, fused=True)
    batches = ((epoch, batch) for epoch in range(10**9) for batch in trainer.plan(epoch))
    best: Validation | None = None
    weights: dict[str, torch.Tensor] = {}
    own = {POSITIONS, "projection.weight"} if trainer.run.config.tie_output else {POSITIONS}
    while True:
        trainer.decide_end()
        start, ended = time.perf_counter(), bool(limits_reached(progress, options))
        due = progress.step == options.valid_first or (progress.step > 0 and progress.step % options.valid_every == 0)
        if ended or (due and progress.step != progress.validated):
            load_pytorch(trainer.model, model.state_dict(), rename=lambda name: None if name in own else name)
            found = trainer.validate()
            click.echo(f"step {progress.step}  {progress.seconds / 60:.2f} min  {found.describe(options.valid_metric)}")
            if found.better_than(best):
                best, weights = found, {name: value.clone() for name, value in model.state_dict().items()}
            progress.validated = progress.step
            progress.seconds += time.perf_counter() - start
            if ended:
                break
        progress.epoch, indices = next(batches)
        batch = collate(trainer.examples, indices)
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * trainer.rate(progress.step)
        source, target, labels = prepare(batch.source, batch.target[:, 1:])
        optimizer.zero_grad()
        F.cross_entropy(model(source, target).flatten(0, 1), labels.flatten(), ignore_index=0,
                        label_smoothing=options.label_smoothing).backward()
        if options.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip_norm)
        optimizer.step()
        progress.step += 1
        progress.seconds += time.perf_counter() - start
    load_pytorch(trainer.model, weights, rename=lambda name: None if name in own else name)
    by_alpha = {alpha: trainer.score(4, alpha)[0] for alpha in ALPHAS}
    click.echo(json.dumps({"torch": torch.__version__, "updates": progress.step, "minutes": progress.seconds / 60,
                           "greedy": best.metric, "by_alpha": by_alpha}))


if __name__ == "__main__":
    main()
