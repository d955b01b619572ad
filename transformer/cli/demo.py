"""``demo``: teach a Transformer to read dates of five languages, and see where it looks and why."""

from __future__ import annotations

import sys
from os.path import relpath
from pathlib import Path
from typing import Any

import click

from minigrad import no_grad

from transformer.cli.command import COUNT, device_option, option, quoted
from transformer.cli.train import Training
from transformer.data import BOS, EOS, build_tokenizers, get_task
from transformer.explore.plots import plot_attention
from transformer.explore.trace import trace
from transformer.explore.translation import explain
from transformer.training.log import can_draw
from transformer.training.loop import train
from transformer.training.recipes import RECIPES, model_config, training_options
from transformer.training.run_folder import is_run

STEPS = RECIPES["dates"]["steps"]
PICTURED, ASKED = "le 1er septembre 2021", "2021-08-01"  # not its month: what is right sends hardly any gradient back


class _Demo(Training):
    """The same command goes on with what it has begun."""

    def again(self, params: dict[str, Any]) -> str:
        steps = "" if params["steps"] == STEPS else f" --steps {params['steps']}"
        return f"python -m transformer demo --out {quoted(params['out'])}{steps}"


@click.command(cls=_Demo)
@option("--out", default="runs/demo", metavar="DIR", type=click.Path(path_type=Path), section="Output",
        help="Where the model and the pictures go; what is there goes on.")
@option("--steps", type=COUNT, default=STEPS, metavar="N", section="Training", help="Updates of the parameters.")
@device_option
def demo(out: Path, steps: int, device: str) -> None:
    """Train on human-written dates → ISO 8601, then read 1,000 that were never seen, and draw where the model looks.

    Needs the extras data and plot, and a few minutes.
    """
    if not can_draw():
        raise ImportError("the demo draws with matplotlib, from  pip install 'minigrad-transformer[data,plot]'")
    if is_run(out):
        click.echo(f"{out} holds a run already: going on with it (remove the folder to start afresh)")
    recipe = RECIPES["dates"] | {"steps": steps}
    data = {"task": "dates", "seed": 1, "train_count": recipe["train_count"], "valid_count": recipe["valid_count"]}
    train_pairs, valid_pairs = (get_task("dates").pairs(split, data[f"{split}_count"], seed=1)
                                for split in ("train", "valid"))  # [("March 3rd, 2021", "2021-03-03"), …]
    sources, targets = zip(*train_pairs, strict=True)
    tokenizers = build_tokenizers("characters", sources, targets)  # characters to numbers and back
    translator = train(out, model_config(recipe, *tokenizers), *tokenizers, train_pairs, valid_pairs,
                       training_options(recipe), data, device, resume=is_run(out)).translator
    test_pairs = get_task("dates").pairs("test", 1000, seed=1)
    texts, dates = zip(*test_pairs, strict=True)
    right = translator.evaluate(texts, dates)["exact_match"]
    click.echo(f"\n{right:.1%} of {len(test_pairs):,} unseen dates are right. Ten of them:\n")
    for text, date in test_pairs[:10]:
        [[best]] = translator.translate([text])
        click.echo(f"  {text:32} → {best.text}" + ("" if best.text == date else f"  (wrong: it is {date})"))

    # A row of the picture is a step of the decoder, which reads one character and writes the next, 0 → 9; a column is a
    # character of the source that it looks at.
    [[best]] = translator.translate([PICTURED])
    source_ids, target_ids = [*tokenizers[0].encode(PICTURED), EOS], [*best.ids, EOS]
    with no_grad(), trace(translator.model) as traced:
        translator.model([source_ids], [[BOS, *best.ids]])
    weights = traced[f"decoder.layers.{translator.model.config.num_decoder_layers - 1}.cross_attention"].weights[0]
    source = tokenizers[0].tokens(source_ids)
    read, written = tokenizers[1].tokens([BOS, *best.ids]), tokenizers[1].tokens(target_ids)
    title = f"{PICTURED} → {best.text}: where the last layer of the decoder looks"
    plot_attention(weights, source, read, written, title).savefig(out / "attention.png", dpi=150)
    explain(translator, PICTURED, ASKED, folder=out).to_html(out / "explain.html")
    click.echo(f"\nwrote {out}/attention.png  (where each head looks while it writes {best.text})"
               f"\n      {out}/history.png    (loss and exact match during training)"
               f"\n      {out}/explain.html   (open it: how the gradient runs back if it should have been {ASKED})"
               f"\n\nNow try your own:  {relpath(sys.executable)} -m transformer translate {quoted(out)}")
