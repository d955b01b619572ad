"""``evaluate``: the scores of a model, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from transformer.cli import sources
from transformer.cli.command import DECODING, FILE, HELD, OUTPUT, RUN, Command, mistakes, options
from transformer.cli.notes import Notes
from transformer.data.parallel_text import ParallelText, first_of_each
from transformer.data.tasks import get_task
from transformer.distributed import Alone
from transformer.training.messages import note
from transformer.training.metrics import BLEU_TOKENIZERS, chrf
from transformer.training.run_folder import write_output
from transformer.training.threads import decoding_threads
from transformer.translator import Translator

BLANKS = dict.fromkeys(map(ord, "\t\r\n"), " ")


@click.command(cls=Command, params=[
    RUN,
    *options("Data",
             ("--source", FILE, "UTF-8 text, one sentence a line."),
             ("--target", FILE, "The reference translations, line for line."),
             ("--count", HELD, "Without files: the number of unseen examples of the model's own task.", 1000)),
    *DECODING,
    *options("Output",
             ("--bleu-tokenize", BLEU_TOKENIZERS,
              "How sacrebleu splits the texts for BLEU.  [default: what suits the tokens and the references]"),
             ("--output", OUTPUT,
              "Write a table: source, reference, output and chrF (without sacrebleu, exact match) of a sentence."))])
def evaluate(folder: Path, source: str | None, target: str | None, count: int, checkpoint: str, device: str,
             ranks: Alone, threads: int | None, output: Path | None, **options: Any) -> None:
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
    files = [*filter(None, (source, target))]
    if len(files) == 1:
        raise click.UsageError("--source and --target belong together: give both files, or none")
    sources.check_readable(files, ranks)
    translator = Translator.load(folder, device, checkpoint, ranks)
    model, data = translator.model, translator.data
    if files:
        text = ParallelText(*files)
        pairs = [*text]
        if text.left_out:
            note(f"left out: {text.left_out:,} pairs that are blank on a side")
    elif "task" in data:
        pairs = get_task(data["task"]).pairs("test", count, seed=1)
    else:
        pairs = first_of_each(sources.read(data).valid)
    lines, references = zip(*pairs, strict=True)
    notes = Notes()
    for number, line in enumerate(lines, start=1):
        notes.unknown(f"source {number}", line, translator.source_tokenizer)
    notes.close()
    with mistakes(), decoding_threads(model.config, threads, model.device):
        result = translator.evaluate(lines, references, ranks=ranks, **options)
    outputs = result.pop("outputs")
    if result["truncated"]:
        note(f"{result['truncated']:,} sources are cut to the model's {model.config.max_length:,} positions")
    if result["bleu"] is None:
        click.echo("no BLEU: it needs sacrebleu, from  pip install 'minigrad-transformer[data]'", err=True)
    click.echo(json.dumps(result))
    click.echo(", ".join(f"{name} {value:.4g}" for name, value in result.items() if isinstance(value, float)), err=True)
    if output is not None:
        rows = [("source", "reference", "output", "score")]
        for line, reference, said in zip(lines, map(translator.as_decoded, references), outputs, strict=True):
            score = 100 * (said == reference) if result["chrf"] is None else chrf([said], [reference])[0]
            rows.append((line, reference, said, f"{score:.2f}"))
        write_output(output, "".join("\t".join(cell.translate(BLANKS) for cell in row) + "\n" for row in rows).encode())
