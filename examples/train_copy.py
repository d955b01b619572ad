"""Teach a Transformer to repeat what it reads: c a b → c a b.

    python examples/train_copy.py
"""

import click

from transformer.cli.command import DEVICE, Command
from transformer.data import build_tokenizers, get_task
from transformer.training.checkpoints import Run
from transformer.training.loop import train
from transformer.training.recipes import RECIPES, model_config, training_options
from transformer.training.run_folder import is_run


@click.command(cls=Command, params=[DEVICE])
@click.option("--out", default="runs/copy", show_default=True, help="Where the model goes; what is there goes on.")
@click.option("--steps", default=RECIPES["copy"]["steps"], show_default=True, help="Updates of the parameters.")
def main(out: str, steps: int, device: str) -> None:
    """Train on 50,000 random strings of the letters a to j, then repeat 1,000 that were never seen."""
    recipe = RECIPES["copy"] | {"steps": steps}  # sizes of the model and of the training that suit the task
    data = {"task": "copy", "seed": 1, "train_count": recipe["train_count"], "valid_count": recipe["valid_count"]}
    train_pairs = get_task("copy").pairs("train", data["train_count"], seed=1)  # [("c a b", "c a b"), …]
    valid_pairs = get_task("copy").pairs("valid", data["valid_count"], seed=1)
    tokenizers = build_tokenizers("words", *zip(*train_pairs, strict=True))  # from letters to numbers and back
    run = Run(model_config(recipe, *tokenizers), tokenizers, data, training_options(recipe))

    result = train(out, run, train_pairs, valid_pairs, device, resume=is_run(out))

    test_pairs = get_task("copy").pairs("test", 1000, seed=1)
    sources, references = zip(*test_pairs, strict=True)
    right = result.translator.evaluate(sources, references)["exact_match"]
    print(f"repeated without a mistake: {right:.1%} of {len(test_pairs):,} unseen strings")
    [best] = result.translator.translate(["j i h g f e d c b a"])
    print(f"j i h g f e d c b a → {best[0].text}")


if __name__ == "__main__":
    main()
