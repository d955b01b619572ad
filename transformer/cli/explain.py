"""``explain``: backpropagation through the attentions of a model, as a page or in the terminal."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from transformer.cli.command import Command, checkpoint_option, device_option, folder_argument, option, threads_option
from transformer.cli.streams import opened
from transformer.cli.unknown import tell_unknown
from transformer.explore.data import Json
from transformer.explore.explanation import Explanation
from transformer.explore.page import is_page
from transformer.explore.stories import StoryError, read_story
from transformer.explore.translation import explain as explain_translation
from transformer.training.files import write_output
from transformer.training.messages import note, shortened
from transformer.translator import Translator

STDOUT, PAGE = Path("-"), Path("explain.html")
SURE = 0.1  # a loss per token, in nats, at which the model gives its own translation 90 % a token


@click.command(cls=Command)
@folder_argument
@click.argument("source")
@click.argument("target", required=False)
@option("--html", metavar="FILE", type=click.Path(path_type=Path), section="Output",
        help="Write the explorer, a page that opens in a browser without a network; - is the standard output.  "
             "[default: explain.html in the current folder, unless --text is given]")
@option("--text", is_flag=True, section="Output",
        help="Write to the terminal.")
@option("--attention", metavar="NAME", section="What to show",
        help="An attention, such as decoder.layers.0.cross_attention: the page opens with it, or --text prints it.  "
             "[default: --html the loss; --text the last cross-attention]")
@option("--also", metavar="TEXT", multiple=True, section="What to show",
        help="Another source in the same batch, with the model's own translation as its target. The option may be "
             "repeated; shorter sources are padded.")
@option("--head", type=click.IntRange(0), metavar="N", section="What to show",
        help="For --text: the head, counted from 0.  [default: 0]")
@option("--step", metavar="NAME", section="What to show",
        help="For --text: one matrix, such as A, dS or dWQ.  [default: a table of all]")
@option("--story", "stories", metavar="FILE", multiple=True, section="What to show", type=click.Path(path_type=Path),
        help="For --html: a story of your own (JSON, see docs/stories.md) that the page tells, beside its own. The "
             "option may be repeated; the page opens with the first.")
@checkpoint_option
@device_option
@threads_option
def explain(folder: Path, source: str, target: str | None, html: Path | None, text: bool, attention: str | None,
            also: tuple[str, ...], head: int | None, step: str | None,
            stories: tuple[Path, ...], checkpoint: str, device: str) -> None:
    """Show how the gradient of a translation runs back through the model in DIR, and through every attention of it.

    SOURCE is a text. TARGET is the translation whose loss is explained; by default, it is the model's own translation,
    of which a trained model is so sure that hardly any gradient flows: a wrong TARGET has one. Everything is computed
    in float64, and finite differences of the loss check every gradient. The checkpoints of the run give the history.

    \b
    python -m transformer explain runs/dates "March 3rd, 2021" 2021-08-03
    python -m transformer explain runs/dates "March 3rd, 2021" 2021-08-03 --text --step dS
    """
    check_texts(source, target, *also)
    replaced = False
    if html is None and not text:
        html, replaced = PAGE, PAGE.exists()
        if replaced and not is_page(PAGE):
            raise click.UsageError(f"{PAGE} is there already, and is no page that this command wrote; name another "
                                   "file: --html FILE")
    _check_options(html, text, head, step)
    told = _read_stories(stories, html)
    translator = Translator.load(folder, device, checkpoint)
    try:
        _tell_unknown(translator, source, target, also)
        explanation = explain_translation(translator, [source, *also], [target, *(None for _ in also)],
                                          folder if html is not None else None)
        if text:
            width = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120
            click.echo(explanation.text(attention, 0, head or 0, step, width))
        if html is not None:
            _write(explanation, html, attention, told, replaced)
        if target is None and explanation.loss is not None and explanation.loss < SURE:
            note(f"the model is sure of its own translation, with a loss of {explanation.loss:.2g}, so that hardly any "
                 "gradient flows; insist on a wrong one to see it flow: explain DIR SOURCE TARGET")
    except (ValueError, IndexError) as error:
        raise click.UsageError(str(error)) from error


def check_texts(source: str, target: str | None, *also: str) -> None:
    """Raise a UsageError for a text that is not UTF-8: its bytes arrive as lone surrogates, which no page can hold."""
    for name, given in (("SOURCE", source), ("TARGET", target or ""), *(("--also", text) for text in also)):
        if any("\ud800" <= character <= "\udfff" for character in given):
            raise click.UsageError(f"{name} is not UTF-8")


def _tell_unknown(translator: Translator, source: str, target: str | None, also: tuple[str, ...]) -> None:
    """Write a note for each text with characters or words that the model does not know."""
    tell_unknown("SOURCE", source, translator.source_tokenizer)
    tell_unknown("TARGET", target or "", translator.target_tokenizer)
    for number, text in enumerate(also, start=1):
        tell_unknown(f"--also {number}", text, translator.source_tokenizer)


def _check_options(html: Path | None, text: bool, head: int | None, step: str | None) -> None:
    """Raise a UsageError for options that no model allows, before the model is loaded."""
    if not text and (head is not None or step is not None):
        raise click.UsageError("--head and --step are of --text; the page has every head and every step")
    if text or html == STDOUT:
        opened(sys.stdout, "output")
    if text and html == STDOUT:
        raise click.UsageError("--text and --html - would both write to the standard output; name a file for the page")
    if html is not None and html != STDOUT and (html.is_dir() or not html.absolute().parent.is_dir()):
        problem = "is a folder; name a file in it" if html.is_dir() else "there is no such folder to write it to"
        raise click.UsageError(f"{html}: {problem}")


def _read_stories(paths: tuple[Path, ...], html: Path | None) -> list[Json]:
    """The stories of --story; UsageError for one that cannot be told, before the model is loaded."""
    if paths and html is None:
        raise click.UsageError("--story is of --html; a text tells no story")
    try:
        return [read_story(path) for path in paths]
    except (StoryError, OSError) as error:
        raise click.UsageError(f"--story: {error}") from error


def _write(explanation: Explanation, path: Path, attention: str | None, stories: list[Json], replaced: bool) -> None:
    page = explanation.page(attention, stories).encode()
    if path == STDOUT:
        click.echo(page, nl=False)  # as bytes: UTF-8, whatever the terminal's encoding is
    else:
        write_output(path, page)
    title = shortened(explanation.title, 300)
    place = f"{path}, over an earlier page" if replaced else path
    click.echo(f"wrote {place}: {title} ({len(page) / 1e6:.1f} MB)", err=True)
