"""Translate any language pair, from four text files: a sentence a line, line i of one the translation of line i.

    python examples/translate_text.py train.en train.ja dev.en dev.ja
"""

from pathlib import Path

import click

from transformer.cli.command import DEVICE, Command
from transformer.data import read_parallel
from transformer.training.checkpoints import Run
from transformer.training.loop import train
from transformer.training.plan import plan_text
from transformer.training.run_folder import is_run


@click.command(cls=Command, params=[DEVICE])
@click.argument("files", nargs=4, metavar="SRC TGT VALID_SRC VALID_TGT", type=Path)
@click.option("--minutes", default=10.0, show_default=True, help="How long to train.")
@click.option("--out", default="runs/text", show_default=True, help="Where the model goes; what is there goes on.")
def main(files: tuple[Path, ...], minutes: float, out: str, device: str) -> None:
    """Train on parallel text, then translate the validation text with beam search and score it with BLEU."""
    train_pairs, valid_pairs = read_parallel(*files[:2]), read_parallel(*files[2:])
    plan = plan_text(train_pairs, {"minutes": minutes})  # vocabulary, model and schedule for so much text and time
    data = {"train": [str(path.resolve()) for path in files[:2]], "valid": [str(path.resolve()) for path in files[2:]]}
    run = Run(plan.config, plan.tokenizers, data, plan.training)
    result = train(out, run, plan.pairs, valid_pairs, device, resume=is_run(out))

    scores = result.translator.evaluate(*zip(*valid_pairs, strict=True), beam=4)
    print(f"BLEU {scores['bleu']:.1f} on {scores['sentences']:,} sentences ({scores['bleu_signature']})\n")
    for source, target in valid_pairs[:5]:
        [[best]] = result.translator.translate([source], beam=4)
        print(f"{source}\n  ours       {best.text}\n  reference  {target}")


if __name__ == "__main__":
    main()
