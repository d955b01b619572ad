"""``evaluate``: the scores of a model, as JSON."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import click

from transformer.cli import sources
from transformer.cli.command import (
    COUNT,
    SEED,
    Command,
    check_beam,
    check_positions,
    decoding_options,
    folder_argument,
    option,
)
from transformer.cli.streams import opened
from transformer.data.parallel_text import line_of_pair, read_parallel
from transformer.distributed import Alone
from transformer.training.checkpoints import load_model
from transformer.training.out_of_memory import ModelDoesNotFit, memory_or
from transformer.training.threads import decoding_threads
from transformer.translator import TooLong, Translator


@click.command(cls=Command)
@folder_argument
@option("--source", metavar="FILE", section="Data", help="UTF-8 text, one sentence a line.")
@option("--target", metavar="FILE", section="Data", help="The reference translations, line for line.")
@option("--count", type=COUNT, default=1000, metavar="N", section="Data",
        help="Without files: the number of unseen examples of the model's own task.")
@option("--seed", type=SEED, default=1, section="Data", help="Without files: the seed of the examples.")
@decoding_options
def evaluate(folder: Path, source: str | None, target: str | None, count: int, seed: int, checkpoint: str, device: str,
             ranks: Alone, threads: int | None, max_length: int | None, **decoding: Any) -> None:
    """Evaluate the model in DIR on parallel files, or on unseen examples of its own task.

    Prints one JSON object, with all digits: exact_match and token_accuracy (fractions), loss (nats per target token),
    bleu (0 to 100, of tokens between blanks) with sacrebleu's signature, sentences and seconds. A line on standard
    error has the same scores rounded, for people.

    \b
    python -m transformer evaluate runs/dates
    python -m transformer evaluate runs/text --source test.en --target test.ja --beam 4
    """
    if (source is None) != (target is None):
        raise click.UsageError("--source and --target belong together: give both files, or none")
    sources.check_readable(filter(None, (source, target)), ranks)
    opened(sys.stdout, "output")
    with memory_or(ModelDoesNotFit()):
        model, run = load_model(folder, device, checkpoint, ranks)
    translator = Translator(model, run.source_tokenizer, run.target_tokenizer)
    check_positions(translator, max_length)
    check_beam(translator, decoding["beam"])
    if source is not None and target is not None:
        pairs = read_parallel(source, target)
    elif "task" in run.data:
        pairs = sources.generated(sources.task_of(run.data), "test", count, seed, "--count")
    else:
        known = "was trained on text files" if "train" in run.data else "does not say what it was trained on"
        raise click.UsageError(f"{folder} {known}: give --source and --target to evaluate it on")
    try:
        with decoding_threads(model.config, threads, model.device):
            result = translator.evaluate(pairs, max_length=max_length, ranks=ranks, **decoding)
    except TooLong as error:
        place = repr(textwrap.shorten(pairs[error.index][error.side], 50, placeholder="…"))
        if source is not None and target is not None:
            path = (source, target)[error.side]
            place = f"{path}, line {line_of_pair(path, error.index)}"
        raise click.UsageError(f"{place}: {error.problem}") from error
    if result["bleu"] is None:
        click.echo("no BLEU: it needs sacrebleu, from  pip install 'minigrad-transformer[data]'", err=True)
    click.echo(json.dumps(result))
    click.echo(rounded(result), err=True)


def rounded(result: dict[str, Any]) -> str:
    """The scores in one line, with as many digits as the messages of the training have."""
    bleu = "" if result["bleu"] is None else f", BLEU {result['bleu']:.2f}"
    return (f"exact match {100 * result['exact_match']:.2f} %, token accuracy {100 * result['token_accuracy']:.2f} %, "
            f"loss {result['loss']:.4f}{bleu}, on {result['sentences']:,} sentences")
