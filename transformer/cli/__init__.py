"""The commands: ``python -m transformer demo | train | translate | evaluate | explain | write-out | info``.

    command.py      what all commands share: options and their help, errors in one line, ranks
    notes.py        what is said of a text that the model does not know
    streams.py      standard streams that are closed or broken
    train.py        train, from its options to the last line
    prepare.py      from these options to a run: its text (sources.py), vocabularies and plan
    translate.py    standard input to standard output
    evaluate.py     scores as JSON
    explain.py      backpropagation through attention, as a page or in the terminal
    demo.py         train on dates, translate, draw
    write_out.py    a sentence's loss and gradients as a program of NumPy
    info.py         what is in a folder
"""

from __future__ import annotations

import click

from minigrad import __version__

from transformer.cli import demo, evaluate, explain, info, train, translate, write_out
from transformer.cli.command import Group

__all__ = ["main"]

COMMANDS = [demo.demo, train.train, translate.translate, evaluate.evaluate, explain.explain, write_out.write_out,
            info.info]


@click.group(cls=Group, commands=COMMANDS, invoke_without_command=True)
@click.version_option(__version__)
@click.pass_context
def main(context: click.Context) -> None:
    """Train a sequence-to-sequence Transformer on a task or on parallel text, and translate with it.

    \b
    python -m transformer train --task dates --out runs/dates
    echo "March 3rd, 2021" | python -m transformer translate runs/dates
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
