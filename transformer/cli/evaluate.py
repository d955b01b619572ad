"""``evaluate``: the scores of a model, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from transformer.cli import sources
from transformer.cli.command import (
    HELD,
    SEED,
    Command,
    check_positions,
    decoding_options,
    folder_argument,
    option,
    writable,
)
from transformer.cli.streams import opened
from transformer.cli.unknown import tell_unknown_of_all
from transformer.data.parallel_text import ParallelText, first_of_each
from transformer.data.tasks import get_task
from transformer.distributed import Alone
from transformer.training.checkpoints import load_model
from transformer.training.files import write_output
from transformer.training.messages import note
from transformer.training.metrics import BLEU_TOKENIZERS, sentence_chrf
from transformer.training.threads import decoding_threads
from transformer.translator import Translator, chosen_alpha


@click.command(cls=Command)
@folder_argument
@option("--source", metavar="FILE", section="Data", help="UTF-8 text, one sentence a line.")
@option("--target", metavar="FILE", section="Data", help="The reference translations, line for line.")
@option("--count", type=HELD, default=1000, metavar="N", section="Data",
        help="Without files: the number of unseen examples of the model's own task.")
@option("--seed", type=SEED, default=1, section="Data", help="Without files: the seed of the examples.")
@decoding_options
@option("--bleu-tokenize", type=click.Choice(BLEU_TOKENIZERS), section="Output",
        help="How sacrebleu splits the texts for BLEU.  [default: none for words, char for characters; for byte pairs "
             "13a, or char if the references have no blanks between words]")
@option("--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", callback=writable,
        section="Output",
        help="Write a table with tabs: source, reference, output and score of each sentence. The score is its chrF; "
             "without sacrebleu, 1 for an exact match, else 0.")
def evaluate(folder: Path, source: str | None, target: str | None, count: int, seed: int, checkpoint: str, device: str,
             ranks: Alone, threads: int | None, max_length: int | None, output: Path | None, **options: Any) -> None:
    """Evaluate the model in DIR on parallel files, or on unseen examples of its own task.

    Without files, a model of text files is evaluated on its validation text, of which each source counts once. That
    text chose the checkpoint, so the scores are better than on other text.

    Prints one JSON object, with all digits: bleu and chrf (0 to 100) with sacrebleu's signatures, exact_match and
    token_accuracy (fractions), loss (nats per target token), the numbers of sentences and of those truncated to the
    model's positions, and seconds. A line on standard error has the scores rounded, for people.

    \b
    python -m transformer evaluate runs/dates
    python -m transformer evaluate runs/text --source test.en --target test.ja --beam 4
    """
    if (source is None) != (target is None):
        raise click.UsageError("--source and --target belong together: give both files, or none")
    sources.check_readable(filter(None, (source, target)), ranks)
    opened(sys.stdout, "output")
    model, run = load_model(folder, device, checkpoint, ranks)
    translator = Translator(model, run.source_tokenizer, run.target_tokenizer, chosen_alpha(folder, ranks))
    check_positions(translator, max_length)
    if source is not None and target is not None:
        text = ParallelText(source, target)
        pairs = [*text]
        if text.left_out:
            note(f"left out: {text.left_out:,} pairs that are blank on a side")
    elif "task" in run.data:
        pairs = get_task(run.data["task"]).pairs("test", count, seed)
    elif "train" in run.data:
        pairs = first_of_each(sources.validation(run.data))
    else:
        raise click.UsageError(f"{folder} does not say what it was trained on: give --source and --target to evaluate "
                               "it on")
    lines, references = zip(*pairs, strict=True)
    tell_unknown_of_all(lines, translator.source_tokenizer)
    with decoding_threads(model.config, threads, model.device):
        result = translator.evaluate(lines, references, max_length=max_length, ranks=ranks, **options)
    outputs = result.pop("outputs")
    if result["truncated"]:
        note(f"{result['truncated']:,} sources are cut to the model's {model.config.max_length:,} positions")
    if result["bleu"] is None:
        click.echo("no BLEU: it needs sacrebleu, from  pip install 'minigrad-transformer[data]'", err=True)
    click.echo(json.dumps(result))
    click.echo(rounded(result, "task" in run.data), err=True)
    if output is not None:
        rows = zip(lines, map(translator.as_decoded, references), outputs, strict=True)
        write_output(output, table([*rows]).encode())


def rounded(result: dict[str, Any], of_task: bool) -> str:
    """The scores in one line, first those that say most of a generated task, or of text."""
    exact = [f"exact match {100 * result['exact_match']:.2f} %"]
    if of_task:
        exact.append(f"token accuracy {100 * result['token_accuracy']:.2f} %")
    graded = [f"{title} {result[name]:.{digits}f}" for title, name, digits in (
        ("BLEU", "bleu", 2), ("chrF", "chrf", 2), ("loss", "loss", 4)) if result[name] is not None]
    return f"{', '.join(exact + graded if of_task else graded + exact)}, on {result['sentences']:,} sentences"


def table(rows: Sequence[tuple[str, str, str]]) -> str:
    """Source, reference, output and score of each sentence, with tabs, below a line of titles."""
    try:
        scores = [f"{sentence_chrf(output, reference):.2f}" for _, reference, output in rows]
    except ImportError:
        scores = [str(int(output == reference)) for _, reference, output in rows]
    blanks = dict.fromkeys(map(ord, "\t\r\n"), " ")
    cells = [("source", "reference", "output", "score"),
             *((*row, score) for row, score in zip(rows, scores, strict=True))]
    return "".join("\t".join(cell.translate(blanks) for cell in row) + "\n" for row in cells)
