"""``translate``: lines from standard input, their translations to standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click

from transformer.cli.command import (
    COUNT,
    Command,
    check_positions,
    decoding_options,
    folder_argument,
    option,
)
from transformer.cli.streams import opened
from transformer.cli.unknown import LineNotes, lacking
from transformer.data.parallel_text import DataError
from transformer.distributed import Alone
from transformer.training.threads import decoding_threads
from transformer.translator import Translation, Translator

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_LINE = 2**24  # bytes: more than the longest sentence of any model, so that an input without an end is refused


@click.command(cls=Command)
@folder_argument
@decoding_options
@option("--prefix", default="", metavar="TEXT", section="Decoding", help="What every translation begins with.")
@option("--nbest", type=COUNT, default=1, metavar="K", section="Output",
        help="The K best translations of a sentence, best first; needs a --beam of K or more.")
@option("--scores", is_flag=True, section="Output",
        help="Write each translation's score after it: the log-probability, normalised for length.")
def translate(folder: Path, beam: int, batch_size: int, max_length: int | None, nbest: int, scores: bool,
              checkpoint: str, device: str, ranks: Alone, threads: int | None, **ranking: Any) -> None:
    """Translate standard input, line by line, with the model in DIR.

    Input and output are UTF-8. Each line gives one line, and a blank line gives a blank one; with --nbest or --scores,
    tabs separate the columns of a line. Lines are read, translated and written in batches of --batch-size, on a
    terminal one by one; a program that waits for each answer needs --batch-size 1. A line with more tokens than the
    model has positions is cut. Standard error names such lines, and characters or words that the model does not know.

    \b
    python -m transformer translate runs/dates --beam 4 < source > output
    """
    if nbest > beam:
        raise click.UsageError(f"--nbest {nbest} needs --beam {nbest} or more, got --beam {beam}")
    source, output = opened(sys.stdin, "input").buffer, opened(sys.stdout, "output").buffer
    translator = Translator.load(folder, device, checkpoint, ranks)
    check_positions(translator, max_length)
    options = dict(ranking, beam=beam, num_best=nbest, max_length=max_length, batch_size=batch_size, ranks=ranks)
    terminal = ranks.broadcast(source.isatty())
    positions, notes = translator.model.config.max_length, LineNotes()

    with decoding_threads(translator.model.config, threads, translator.model.device):
        batches = read_batches(source, 1 if terminal else batch_size * ranks.size, terminal)
        for first, lines in _on_all(ranks, batches):
            translations = translator.translate(lines, **options)
            for number, (line, found) in enumerate(zip(lines, translations, strict=True), start=first):
                text = ""
                if line.strip():
                    if unknown := lacking(line, translator.source_tokenizer):
                        notes.tell(number, unknown)
                    if found[0].truncated:
                        notes.tell(number, f"cut to the model's {positions:,} positions, before it is translated")
                    text = one_line(found, columns=nbest > 1 or scores, scores=scores)
                output.write(text.encode() + b"\n")
            output.flush()
    notes.close()


def _on_all(ranks: Alone, batches: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """The batches that rank 0 reads, on all ranks."""
    while (batch := ranks.first(lambda: next(batches, None))) is not None:
        yield batch


def read_batches(stream: BinaryIO, size: int, prompt: bool) -> Iterator[tuple[int, list[str]]]:
    """The lines of a UTF-8 stream in batches of `size`, each with the number of its first line.

    As in files, a line ends with a line feed or with carriage return and line feed, and a byte order mark is dropped.

    Raises:
        DataError: a line is not UTF-8, or of `LONGEST_LINE` bytes or more; the lines before it were yielded.
    """
    first, lines = 1, list[str]()
    for number, row in enumerate(_rows(stream, prompt), start=1):
        if number == 1:
            row = row.removeprefix(BYTE_ORDER_MARK)
        if len(row) == LONGEST_LINE:
            yield first, lines
            raise DataError(f"standard input, line {number}: it has {LONGEST_LINE:,} bytes or more")
        try:
            lines.append(row.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            yield first, lines
            byte = error.object[error.start]
            raise DataError(f"standard input, line {number}: not valid UTF-8 (byte {byte:#04x})") from error
        if len(lines) == size:
            yield first, lines
            first, lines = number + 1, []
    yield first, lines


def _rows(stream: BinaryIO, prompt: bool) -> Iterator[bytes]:
    while True:
        if prompt:
            click.echo("> ", nl=False, err=True)
        row = stream.readline(LONGEST_LINE)
        if not row:
            break
        yield row
    if prompt:
        click.echo(err=True)


def one_line(found: Sequence[Translation], columns: bool, scores: bool) -> str:
    """The translations of one line as one line; with `columns`, tabs separate them and their scores."""
    kept_out = dict.fromkeys(map(ord, "\t\r\n" if columns else "\r\n"), " ")
    cells = []
    for translation in found:
        cells.append(translation.text.translate(kept_out))
        if scores:
            cells.append(f"{translation.score:.4f}")
    return "\t".join(cells)
