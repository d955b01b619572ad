"""``translate``: lines from standard input, their translations to standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from transformer.cli.command import DECODING, RUN, Command, mistakes, options
from transformer.cli.notes import Notes
from transformer.cli.streams import standard_input
from transformer.data.parallel_text import DataError, line_of
from transformer.distributed import Alone
from transformer.training.threads import decoding_threads
from transformer.translator import Translator

BLANKS = dict.fromkeys(map(ord, "\r\n"), " ")  # a translation is one line
LONGEST_LINE = 2**24  # bytes: more than the longest sentence of any model, so that an input without an end is refused


@click.command(cls=Command, params=[
    RUN, *options("Decoding", ("--prefix", {}, "What every translation begins with.", "")), *DECODING])
def translate(folder: Path, batch_size: int, checkpoint: str, device: str, ranks: Alone, threads: int | None,
              **options: Any) -> None:
    """Translate standard input, line by line, with the model in DIR.

    Input and output are UTF-8. Each line gives one line, and a blank line gives a blank one. Lines are read, translated
    and written in batches of --batch-size, on a terminal one by one; a program that waits for each answer needs
    --batch-size 1. A line with more tokens than the model has positions is cut. Standard error names such lines, and
    characters or words that the model does not know.

    \b
    python -m transformer translate runs/dates --beam 4 < source > output
    """
    source, output = standard_input().buffer, sys.stdout.buffer
    translator = Translator.load(folder, device, checkpoint, ranks)
    terminal = ranks.first(source.isatty)
    model, notes = translator.model, Notes()

    with mistakes(), decoding_threads(model.config, threads, model.device):
        batches = read_batches(source, 1 if terminal else batch_size * ranks.size, terminal)
        for lines in iter(lambda: ranks.first(lambda: next(batches, None)), None):  # rank 0 reads for all
            translations = translator.translate(lines.values(), batch_size=batch_size, ranks=ranks, **options)
            for (number, line), [best] in zip(lines.items(), translations, strict=True):
                notes.unknown(f"line {number}", line, translator.source_tokenizer)
                if best.truncated:
                    notes.tell(f"line {number}", f"cut to the model's {model.config.max_length:,} positions, before it "
                               "is translated")
                output.write(best.text.translate(BLANKS).encode() + b"\n")  # str.translate: line ends become blanks
            output.flush()
    notes.close()


def read_batches(stream: BinaryIO, size: int, prompt: bool) -> Iterator[dict[int, str]]:
    """The lines of a UTF-8 stream by their numbers, in batches of `size`.

    As in files, a line ends with a line feed or with carriage return and line feed, and a byte order mark at the start
    is dropped.

    Raises:
        DataError: a line is not UTF-8, or of `LONGEST_LINE` bytes or more; the lines before it were yielded.
    """
    def row() -> bytes:
        if prompt:
            click.echo("> ", nl=False, err=True)
        return stream.readline(LONGEST_LINE)

    lines = dict[int, str]()
    for number, line in enumerate(iter(row, b""), start=1):
        try:
            if len(line) == LONGEST_LINE:
                raise DataError(f"standard input, line {number:,}: it has {LONGEST_LINE:,} bytes or more")
            lines[number] = line_of(line, number, "standard input")
        except DataError:
            yield lines
            raise
        if len(lines) == size:
            yield lines
            lines = {}
    if prompt:
        click.echo(err=True)
    yield lines
