"""``explain``: backpropagation through the attentions of a model, as a page or in the terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from transformer.cli.command import (
    CHECKPOINT,
    COUNT,
    DEVICE,
    FILE,
    FLAG,
    NAME,
    OUTPUT,
    RUN,
    SOURCE,
    TARGET,
    Command,
    mistakes,
    options,
)
from transformer.cli.notes import Notes
from transformer.explore.live import LIMIT
from transformer.explore.page import is_page
from transformer.explore.translation import explain as explain_translation
from transformer.training.messages import note, shortened
from transformer.training.run_folder import write_output
from transformer.translator import Translator

PAGE = Path("explain.html")
SURE = 0.1  # a loss per token, in nats, at which the model gives its own translation 90 % a token


@click.command(cls=Command, params=[
    RUN, SOURCE, TARGET,
    *options("Output",
             ("--html", OUTPUT,
              "Write a page for a browser.  [default: explain.html, unless --text is given]"),
             ("--text", FLAG, "Write to the terminal."),
             ("--limit", click.FloatRange(0, min_open=True), "The MB that a page may have.", LIMIT)),
    *options("What to show",
             ("--attention", NAME,
              "An attention, such as decoder.layers.0.cross_attention: the page opens with it, or --text prints it."),
             ("--also", {"multiple": True},
              "Another source in the same batch, with the model's own translation as its target; may be repeated."),
             ("--head", COUNT, "For --text: the head, counted from 1.  [default: 1]"),
             ("--step", NAME, "For --text: one matrix, such as A, dS or dWQ.  [default: a table of all]"),
             ("--story stories", {"multiple": True, "type": FILE},
              "For --html: a story of your own (docs/stories.md), with which the page opens; may be repeated.")),
    CHECKPOINT, DEVICE])
def explain(folder: Path, source: str, target: str | None, html: Path | None, text: bool, limit: float,
            attention: str | None, also: tuple[str, ...], head: int | None, step: str | None,
            stories: tuple[str, ...], checkpoint: str, device: str) -> None:
    """Show how the gradient of a translation runs back through the model in DIR, and through every attention of it.

    SOURCE is a text. TARGET is the translation whose loss is explained; by default, it is the model's own translation,
    of which a trained model is so sure that hardly any gradient flows: a wrong TARGET has one. Everything is computed
    in float64, and finite differences of the loss check every gradient.

    \b
    python -m transformer explain runs/dates "March 3rd, 2021" 2021-08-03
    python -m transformer explain runs/dates "March 3rd, 2021" 2021-08-03 --text --step dS
    """
    if html is None and not text:
        html = PAGE
        if PAGE.exists() and not is_page(PAGE):
            raise click.UsageError(f"{PAGE} is there already, and is no page of this command; name another file: "
                                   "--html FILE")
    if (head or step) and not text:
        raise click.UsageError("--head and --step are of --text; the page has every head and every step")
    translator = Translator.load(folder, device, checkpoint)
    notes = Notes()
    notes.unknown("TARGET", target, translator.target_tokenizer)
    for number, read in enumerate([source, *also]):
        notes.unknown(f"--also {number}" if number else "SOURCE", read, translator.source_tokenizer)
    with mistakes():
        explanation = explain_translation(translator, [source, *also], [target, *[None] * len(also)], limit)
        if text:
            width = shutil.get_terminal_size((120, 24)).columns
            click.echo(explanation.text(attention, 0, (head or 1) - 1, step, width))
        if html is not None:
            page = explanation.page(attention, stories).encode()
            write_output(html, page)
            click.echo(f"wrote {html}: {shortened(explanation.title, 300)} ({len(page) / 1e6:.1f} MB)", err=True)
    if target is None and explanation.loss is not None and explanation.loss < SURE:
        note(f"the model is sure of its own translation, with a loss of {explanation.loss:.2g}, so that hardly any "
             "gradient flows; insist on a wrong one to see it flow: explain DIR SOURCE TARGET")
