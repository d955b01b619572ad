"""``demo``: teach a Transformer to read dates of five languages, and see where it looks and why."""

from __future__ import annotations

import sys
from os.path import relpath
from pathlib import Path
from typing import Any

import click

from transformer.cli.command import DEVICE, FOLDER, options, quoted
from transformer.cli.train import Training
from transformer.cli.train import train as train_command
from transformer.data import get_task
from transformer.data.extras import require
from transformer.distributed import ALONE
from transformer.explore.plots import plot_attention
from transformer.explore.translation import explain
from transformer.training.recipes import RECIPES
from transformer.training.run_folder import is_run
from transformer.translator import Translator

PICTURED, ASKED = "le 1er septembre 2021", "2021-08-01"  # not its month: what is right sends hardly any gradient back


@click.command(cls=Training, params=[*options(
    "Run", ("--out", FOLDER, "Where the model and the pictures go; what is there goes on.", "runs/demo"),
    ("--steps", int, "Updates of the parameters.", RECIPES["dates"]["steps"])), DEVICE])
@click.pass_context
def demo(context: click.Context, /, out: Path, steps: int, device: str) -> None:
    """Train on human-written dates → ISO 8601, then read 1,000 that were never seen, and draw where the model looks.

    \b
    It takes a few minutes, and needs
    pip install 'minigrad-transformer[data,plot]'
    """
    require("matplotlib", "the demo", "data,plot")
    if is_run(out):
        click.echo(f"{out} holds a run already: going on with it (remove the folder to start afresh)")
    context.invoke(train_command, task="dates", out=out, steps=steps, device=device, resume=is_run(out), ranks=ALONE)
    translator = Translator.load(out, device)
    texts, dates = zip(*get_task("dates").pairs("test", 1000, seed=1), strict=True)
    result = translator.evaluate(texts, dates)
    click.echo(f"\n{result['exact_match']:.1%} of {len(texts):,} unseen dates are right. Ten of them:\n")
    for text, date, found in [*zip(texts, dates, result["outputs"], strict=True)][:10]:
        click.echo(f"  {text:32} → {found}" + ("" if found == date else f"  (wrong: it is {date})"))

    # A row of the picture is a step of the decoder, which reads one character and writes the next, 0 → 9; a column is a
    # character of the source that it looks at.
    own = explain(translator, PICTURED)
    weights = own.trace[f"decoder.layers.{translator.model.config.num_decoder_layers - 1}.cross_attention"].weights
    tokens: Any = own.tokens  # an explanation of a text has them
    title = f"{own.title}: where the last layer of the decoder looks"
    picture = plot_attention(weights[0], tokens.source[0], tokens.target[0], tokens.following[0], title)
    picture.savefig(out / "attention.png", dpi=150)
    explain(translator, PICTURED, ASKED).to_html(out / "explain.html")
    click.echo(f"\nwrote {out}/attention.png  (where each head looks: {own.title})"
               f"\n      {out}/history.png    (loss and exact match during training)"
               f"\n      {out}/explain.html   (open it: how the gradient runs back if it should have been {ASKED})"
               f"\n\nNow try your own:  {relpath(sys.executable)} -m transformer translate {quoted(out)}")
