"""Teach a small GPT to write, character by character, like any text file; without one, like this project's pages.

    python examples/train_characters.py FILE
"""

from pathlib import Path

import click
import numpy as np
from tqdm import tqdm

import minigrad
from minigrad import nn, no_grad, optim

from transformer import LanguageModel, stream
from transformer.cli.command import COUNT, DEVICE, Command
from transformer.data import DataError
from transformer.data.tokenizer import CharacterTokenizer
from transformer.data.vocabulary import SPECIALS

DOCS = Path(__file__).parents[1] / "docs"
BIT = np.log(2)  # in nats


@click.command(cls=Command, params=[DEVICE])
@click.argument("file", required=False, type=Path)
@click.option("--steps", type=COUNT, default=1000, show_default=True, help="Updates of the parameters.")
@click.option("--length", type=click.IntRange(2), default=64, show_default=True, help="Characters that it looks back.")
@click.option("--batch-size", type=COUNT, default=16, show_default=True, help="Passages of each update.")
@click.option("--prompt", default="The ", show_default=True, help="How the sample begins.")
@click.option("--seed", default=1, show_default=True)
def main(file: Path | None, steps: int, length: int, batch_size: int, prompt: str, seed: int, device: str) -> None:
    """Train on nine tenths of the text, tell the loss on the last tenth in bits for each character, and write."""
    text = read(sorted(DOCS.glob("*.md")) if file is None else [file])
    tokenizer = CharacterTokenizer.train([text])
    ids = np.array(tokenizer.encode(text))
    train, valid = np.split(ids, [len(ids) * 9 // 10])
    if len(valid) <= length:
        raise DataError(f"{len(ids):,} characters are too few for --length {length}; take {10 * (length + 1):,}")
    minigrad.manual_seed(seed)
    model = LanguageModel(len(tokenizer.vocabulary), d_model=128, num_heads=4, num_layers=3, positions="rotary",
                          dropout=0.0).to(device)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1)
    schedule = optim.CosineLR(optimizer, warmup_steps=steps // 10, total_steps=steps, min_ratio=0.1)
    rng, bar = np.random.default_rng(seed), tqdm(range(1, steps + 1), unit="step")
    for step in bar:
        minigrad.random.set_step(step)
        starts = rng.integers(0, len(train) - length, (batch_size, 1))
        loss = model.loss(train[starts + np.arange(length + 1)])
        optimizer.zero_grad()
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            bar.set_postfix_str(f"{loss.item() / BIT:.3f} bits/character")
        if step % 250 == 0 or step == steps:
            bar.write(f"step {step:5d}  validation: {validate(model, valid, length):.3f} bits/character")

    print(f"\n{prompt}", end="")
    written, half = tokenizer.encode(prompt or "\n"), length // 2
    while len(written) < 500:  # as many characters after the last few as it has learnt to look back
        for token in stream(model, written[-half:], half, temperature=0.8, never=range(len(SPECIALS))):
            written.append(token)
            print(tokenizer.decode([token]), end="", flush=True)
    print()


def read(files: list[Path]) -> str:
    """The texts of the files, one after the other."""
    try:
        return "\n".join(file.read_text(encoding="utf-8") for file in files)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {files[0]}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error


def validate(model: LanguageModel, ids: np.ndarray, length: int) -> float:
    """The mean loss of a character, in bits, over passages of `length` one after the other."""
    passages = ids[np.arange(0, len(ids) - length, length)[:, None] + np.arange(length + 1)]
    with nn.evaluating(), no_grad():
        parts = np.split(passages, range(64, len(passages), 64))
        total = sum(model.loss(part, reduction="sum").item() for part in parts)
    return total / (len(passages) * length) / BIT


if __name__ == "__main__":
    main()
