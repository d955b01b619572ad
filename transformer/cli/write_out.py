"""``write-out``: the loss of a sentence and its gradients as a program of NumPy."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path

import click
import numpy as np

from minigrad.inspect import program

from transformer.cli.command import CHECKPOINT, OUTPUT, RUN, SOURCE, TARGET, Command, mistakes, options
from transformer.cli.notes import Notes
from transformer.data.batches import collate
from transformer.explore.translation import double, examples_of
from transformer.finite import overflow, unwarned
from transformer.training.run_folder import write_output
from transformer.training.threads import suitable_products
from transformer.translator import Translator

MARK = "# Written by python -m transformer write-out: "
MAIN = """

if __name__ == "__main__":
    from pathlib import Path

    loss, gradients = step(dict(np.load(Path(__file__).with_suffix(".npz"))))
    for name, gradient in gradients.items():
        print(f"{name:60} {str(gradient.shape):14} norm {np.linalg.norm(gradient):.6e}")
    print("loss", loss)
"""


@click.command("write-out", cls=Command, params=[RUN, SOURCE, TARGET, *options(
    "Output", ("--out", OUTPUT, "The program; the weights lie beside it, in a file that ends in .npz.", "step.py")),
    CHECKPOINT])
def write_out(folder: Path, source: str, target: str | None, out: Path, checkpoint: str) -> None:
    """Write the loss of a translation by the model in DIR, and its gradients, as a program that needs NumPy alone.

    SOURCE is a text. TARGET is the translation whose loss is computed; by default, it is the model's own. One line of
    the program is one operation, in float64, forward and backward; it prints the loss and the norm of each gradient.

    \b
    python -m transformer write-out runs/dates "March 3rd, 2021" 2021-08-03 --out step.py
    python step.py
    """
    arrays_file = out.with_suffix(".npz")
    if out.suffix != ".py":
        raise click.UsageError(f"--out {out}: the name of a program ends in .py")
    ours = out.is_file() and out.read_bytes().startswith(MARK.encode())
    if not ours and (out.exists() or arrays_file.exists()):
        raise click.UsageError(f"{out} or {arrays_file} is there already, and this command did not write it; name "
                               "another file: --out FILE")
    translator = Translator.load(folder, which=checkpoint)
    notes = Notes()
    notes.unknown("SOURCE", source, translator.source_tokenizer)
    notes.unknown("TARGET", target, translator.target_tokenizer)
    model, packed = double(translator.model), BytesIO()
    with mistakes(), suitable_products(model.config), unwarned():
        examples = examples_of(translator, [source], [target])
        batch = collate(examples, [0])
        if not math.isfinite(model.loss(batch.source, batch.target[:, 1:]).item()):
            raise overflow(model, "loss")
        text, arrays = program(lambda: model.loss(batch.source, batch.target[:, 1:]), model)
        written = translator.target_tokenizer.decode(examples[0][1])
        lines = f"{MARK}{source!r} → {written!r}\n{text}{MAIN}".encode()
    np.savez(packed, **arrays)
    write_output(arrays_file, packed.getvalue())
    write_output(out, lines)
    click.echo(f"wrote {out} and {arrays_file}; run it: python {out}", err=True)
