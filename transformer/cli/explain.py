"""``explain``: backpropagation through the attentions of a model, as a page or in the terminal."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TextIO

import click

from transformer.cli.command import Command, checkpoint_option, device_option, folder_argument, option, threads_option
from transformer.cli.streams import opened
from transformer.data.vocabulary import UNK
from transformer.explore.explanation import Explanation
from transformer.explore.translation import explain as explain_translation
from transformer.training.files import write_output
from transformer.training.messages import shortened
from transformer.translator import TooLong, Translator

STDOUT = Path("-")


class Cell(click.ParamType):
    """``I,J``: a row and a column, counted from 0."""

    name = "I,J"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Convert the text to two numbers; any other text is a usage error."""
        parts = value.split(",")
        if len(parts) != 2 or not all(part.strip().isdecimal() and len(part) < 20 for part in parts):
            self.fail(f"{value!r} is no row and column, counted from 0, such as 2,1", param, ctx)
        return int(parts[0]), int(parts[1])


@click.command(cls=Command)
@folder_argument
@click.argument("source")
@click.argument("target", required=False)
@option("--html", metavar="FILE", type=click.Path(path_type=Path), section="Output",
        help="Write the explorer, a page that opens in a browser without a network; - is the standard output.")
@option("--text", is_flag=True, section="Output",
        help="Write to the terminal, in colour unless NO_COLOR is set or the output is no terminal.")
@option("--attention", "attentions", metavar="NAME", multiple=True, section="What to show",
        help="The attention to show, such as decoder.layers.0.cross_attention. --html takes the option several times, "
             "and decoder.layers.0 means the whole layer.  [default: --html as many as fit into 2 MB, or more for a "
             "long text; --text the last cross-attention]")
@option("--also", metavar="TEXT", multiple=True, section="What to show",
        help="Another source in the same batch, with the model's own translation as its target. The option may be "
             "repeated; shorter sources are padded.")
@option("--head", type=click.IntRange(0), metavar="N", section="What to show",
        help="For --text: the head, counted from 0.  [default: 0]")
@option("--item", type=click.IntRange(0), metavar="N", section="What to show",
        help="For --text: the sentence; 0 is SOURCE, the others are those of --also.  [default: 0]")
@option("--step", metavar="NAME", section="What to show",
        help="For --text: one matrix, such as A, dS or dWQ.  [default: a table of all]")
@option("--cell", type=Cell(), section="What to show",
        help="For --text --step: write out how this cell is computed, and check it by a finite difference.")
@checkpoint_option
@device_option
@threads_option
def explain(folder: Path, source: str, target: str | None, html: Path | None, text: bool, attentions: tuple[str, ...],
            also: tuple[str, ...], head: int | None, item: int | None, step: str | None, cell: tuple[int, int] | None,
            checkpoint: str, device: str) -> None:
    """Show how the gradient of a translation runs back through every attention of the model in DIR.

    SOURCE is a text. TARGET is the translation whose loss is explained; by default, it is the model's own translation.
    Everything is computed in float64, and finite differences of the loss check every gradient. The checkpoints of the
    run give the history.

    \b
    python -m transformer explain runs/dates "March 3rd, 2021" --html page.html
    python -m transformer explain runs/dates "March 3rd, 2021" --text --step dS --cell 2,1
    """
    if html is None and not text:
        raise click.UsageError("say what to make: --html FILE writes a page, --text writes to the terminal")
    _check_texts(source, target, *also)
    _check_options(html, text, attentions, head, item, step, cell)
    translator = Translator.load(folder, device, checkpoint)
    try:
        sources, targets = [source, *also], None
        if target is not None:
            targets = [target, *_translated(translator, source, also)]
        _tell_unknown(translator, source, target, also)
        explanation = explain_translation(translator, sources, targets, folder if html is not None else None)
        if text:
            colour, width = terminal(sys.stdout)
            name = attentions[0] if attentions else None
            click.echo(explanation.text(name, item or 0, head or 0, step, cell, colour, width), color=colour)
        if html is not None:
            _write(explanation, html, attentions)
    except TooLong as error:
        name = f"--also {error.index}" if error.index else f"the {('source', 'target')[error.side]}"
        raise click.UsageError(f"{name} is too long: {error.problem}") from error
    except (ValueError, IndexError) as error:
        raise click.UsageError(str(error)) from error


def terminal(output: TextIO) -> tuple[bool, int]:
    """Whether to write colours to `output` (https://no-color.org), and how many columns there are."""
    if not output.isatty():
        return False, 120
    return not os.environ.get("NO_COLOR"), shutil.get_terminal_size((120, 24)).columns


def _translated(translator: Translator, source: str, also: tuple[str, ...]) -> list[str]:
    """The model's translations of the texts of --also; UsageError names one whose translation is empty."""
    texts = [best.text for [best] in translator.translate([source, *also])[1:]]  # a TooLong counts SOURCE, too
    for number, (text, translation) in enumerate(zip(also, texts, strict=True), start=1):
        if not translation.strip():
            raise click.UsageError(f"--also {number}, {textwrap.shorten(text, 50, placeholder='…')!r}: the model's "
                                   "translation is empty, and there is nothing to explain; give another text")
    return texts


def _check_texts(source: str, target: str | None, *also: str) -> None:
    """Raise a UsageError for an --also without text, and for a text that is not UTF-8: its bytes arrive as lone
    surrogates, which no page can hold.
    """
    for number, text in enumerate(also, start=1):
        if not text.strip():
            raise click.UsageError(f"--also {number} is empty; give a text for the model to read")
    for name, given in (("SOURCE", source), ("TARGET", target or ""), *(("--also", text) for text in also)):
        if any("\ud800" <= character <= "\udfff" for character in given):
            raise click.UsageError(f"{name} is not UTF-8")


def _tell_unknown(translator: Translator, source: str, target: str | None, also: tuple[str, ...]) -> None:
    """Write a note for each text with tokens outside the vocabulary: the model reads <unk> in their place."""
    for name, text, tokenizer in (("SOURCE", source, translator.source_tokenizer),
                                  ("TARGET", target or "", translator.target_tokenizer),
                                  *(("--also", text, translator.source_tokenizer) for text in also)):
        ids = tokenizer.encode(text)
        if UNK in ids:
            click.echo(f"note: {ids.count(UNK)} of the {len(ids)} tokens of {name} are not in the model's vocabulary; "
                       "it reads <unk> there", err=True)


def _check_options(html: Path | None, text: bool, attentions: tuple[str, ...], head: int | None, item: int | None,
                   step: str | None, cell: tuple[int, int] | None) -> None:
    """Raise a UsageError for options that no model allows, before the model is loaded."""
    for name, given in (("--head", head), ("--item", item)):
        if given is not None and not text:
            raise click.UsageError(f"{name} is of --text; the page has every head and every sentence")
    if cell is not None and step is None:
        raise click.UsageError("--cell belongs to a --step, such as --step dS")
    if step is not None and not text:
        raise click.UsageError("--step is of --text; the page shows every step")
    if text or html == STDOUT:
        opened(sys.stdout, "output")
    if text and len(attentions) > 1:
        raise click.UsageError(f"--text shows one attention, got {len(attentions)} times --attention")
    if text and html == STDOUT:
        raise click.UsageError("--text and --html - would both write to the standard output; name a file for the page")
    if html is not None and html != STDOUT and (html.is_dir() or not html.absolute().parent.is_dir()):
        problem = "is a folder; name a file in it" if html.is_dir() else "there is no such folder to write it to"
        raise click.UsageError(f"{html}: {problem}")


def _write(explanation: Explanation, path: Path, attentions: tuple[str, ...]) -> None:
    page = explanation.page(attentions)
    if path == STDOUT:
        click.echo(page.html.encode(), nl=False)  # as bytes: UTF-8, whatever the terminal's encoding is
    else:
        write_output(path, page.html.encode())
    title = shortened(explanation.title, 300)
    click.echo(f"wrote {path}: {title} ({len(page.html.encode()) / 1e6:.1f} MB)", err=True)
    if page.left_out and not attentions:
        names = ", ".join(page.left_out)
        click.echo(f"left out, for want of room: {names}; --attention NAME shows one of them instead", err=True)
