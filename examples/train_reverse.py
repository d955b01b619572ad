"""Teach a Transformer to read backwards, c a b → b a c, with a model and a training of our own choice.

    python examples/train_reverse.py
"""

import click

from transformer import TransformerConfig
from transformer.cli.command import DEVICE, Command
from transformer.data import build_tokenizers, get_task
from transformer.training.checkpoints import Run
from transformer.training.loop import train
from transformer.training.options import TrainingOptions
from transformer.training.run_folder import is_run


@click.command(cls=Command, params=[DEVICE])
@click.option("--out", default="runs/reverse", show_default=True, help="Where the model goes; what is there goes on.")
@click.option("--steps", default=2500, show_default=True, help="Updates of the parameters.")
def main(out: str, steps: int, device: str) -> None:
    """Train on random strings of the letters a to z, then reverse 1,000 that were never seen."""
    task = get_task("reverse")
    train_pairs = task.pairs("train", 50_000, seed=1)  # [("c a b", "b a c"), …]
    valid_pairs = task.pairs("valid", 500, seed=1)

    # Between letters and numbers, for each side; the vocabularies come from the training pairs.
    sources, targets = zip(*train_pairs, strict=True)
    tokenizers = build_tokenizers("words", sources, targets)
    config = TransformerConfig(
        *(len(tokenizer.vocabulary) for tokenizer in tokenizers), d_model=64, num_heads=4, d_ff=256,
        num_encoder_layers=2, num_decoder_layers=2, dropout=0.0, max_length=64)
    options = TrainingOptions(steps=steps, batch_tokens=1024, learning_rate=2e-3, warmup_steps=200, schedule="cosine",
                              label_smoothing=0.0, valid_every=500)
    data = {"task": "reverse", "train_count": 50_000, "valid_count": 500, "seed": 1}  # for  train --resume
    result = train(out, Run(config, tokenizers, data, options), train_pairs, valid_pairs, device, resume=is_run(out))

    test_pairs = task.pairs("test", 1000, seed=1)
    sources, references = zip(*test_pairs, strict=True)
    right = result.translator.evaluate(sources, references)["exact_match"]
    print(f"reversed without a mistake: {right:.1%} of {len(test_pairs):,} unseen strings")

    # The three best of a beam of four, with their scores: log-probabilities, normalised for length.
    [found] = result.translator.translate(["d e s s e r t s"], beam=4, num_best=3)
    for translation in found:
        print(f"{translation.score:8.4f}  {translation.text}")


if __name__ == "__main__":
    main()
