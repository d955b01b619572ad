"""Translate any language pair, from four text files: a sentence a line, line i of one the translation of line i.

    python examples/translate_text.py train.en train.ja dev.en dev.ja
"""

from dataclasses import replace
from pathlib import Path

import click

from transformer.cli.command import Command, device_option
from transformer.data import build_tokenizers, read_parallel
from transformer.training.loop import train
from transformer.training.recipes import RECIPES
from transformer.training.run_folder import is_run


@click.command(cls=Command)
@click.argument("files", nargs=4, metavar="SRC TGT VALID_SRC VALID_TGT", type=Path)
@click.option("--tokens", type=click.Choice(["words", "characters", "bpe"]), default="words", show_default=True)
@click.option("--out", default="runs/text", show_default=True, help="Where the model goes; what is there goes on.")
@click.option("--steps", type=int, help="Updates of the parameters, in place of the recipe's epochs.")
@device_option
def main(files: tuple[Path, ...], tokens: str, out: str, steps: int | None, device: str) -> None:
    """Train on parallel text, then translate the validation text with beam search and score it with BLEU."""
    recipe = RECIPES["text"]
    options = recipe.options if steps is None else replace(recipe.options, steps=steps, epochs=None)
    train_pairs, valid_pairs = read_parallel(*files[:2]), read_parallel(*files[2:])
    sources, targets = zip(*train_pairs, strict=True)
    tokenizers = build_tokenizers(tokens, sources, targets)
    data = {"train": [str(path.resolve()) for path in files[:2]], "valid": [str(path.resolve()) for path in files[2:]]}
    result = train(out, recipe.config(*tokenizers), *tokenizers, train_pairs, valid_pairs, options, data, device,
                   resume=is_run(out))

    scores = result.translator.evaluate(*zip(*valid_pairs, strict=True), beam=4)
    print(f"BLEU {scores['bleu']:.1f} on {scores['sentences']:,} sentences ({scores['bleu_signature']})\n")
    for source, target in valid_pairs[:5]:
        [[best]] = result.translator.translate([source], beam=4)
        print(f"{source}\n  ours       {best.text}\n  reference  {target}")


if __name__ == "__main__":
    main()
