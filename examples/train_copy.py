"""Teach a Transformer to repeat what it reads: c a b → c a b.

    python examples/train_copy.py
"""

import click

from transformer.cli.command import Command, device_option
from transformer.data import get_task
from transformer.training.loop import train
from transformer.training.recipes import RECIPES, model_config, task_data, task_pairs, task_tokenizers, training_options
from transformer.training.run_folder import is_run


@click.command(cls=Command)
@click.option("--out", default="runs/copy", show_default=True, help="Where the model goes; what is there goes on.")
@click.option("--steps", default=RECIPES["copy"]["steps"], show_default=True, help="Updates of the parameters.")
@device_option
def main(out: str, steps: int, device: str) -> None:
    """Train on 50,000 random strings of the letters a to j, then repeat 1,000 that were never seen."""
    recipe = RECIPES["copy"]  # sizes of the model and of the training that suit the task
    train_pairs, valid_pairs = task_pairs("copy", recipe, seed=1)  # [("c a b", "c a b"), …]
    tokenizers = task_tokenizers(get_task("copy"), train_pairs)  # from letters to numbers and back, for each side
    config = model_config(recipe, *tokenizers)
    options = training_options(recipe | {"steps": steps})

    data = task_data("copy", recipe, seed=1)  # so that the command train may resume the run
    result = train(out, config, *tokenizers, train_pairs, valid_pairs, options, data, device, resume=is_run(out))

    test_pairs = get_task("copy").pairs("test", 1000, seed=1)
    sources, references = zip(*test_pairs, strict=True)
    right = result.translator.evaluate(sources, references)["exact_match"]
    print(f"repeated without a mistake: {right:.1%} of {len(test_pairs):,} unseen strings")
    [best] = result.translator.translate(["j i h g f e d c b a"])
    print(f"j i h g f e d c b a → {best[0].text}")


if __name__ == "__main__":
    main()
