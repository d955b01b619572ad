"""Teach a small vision transformer to read handwritten digits, 8 by 8 pixels each.

    python examples/digits.py        (with scikit-learn, of the extra `data`, which brings the images along)

An image is cut into patches, and the patches are the tokens of the sequence (Dosovitskiy et al. 2021,
arXiv:2010.11929).
"""

import time

import click
import numpy as np
from tqdm import tqdm

import minigrad as mg
from minigrad import Tensor, nn, no_grad, optim
from minigrad import functional as F

from transformer.cli.command import DEVICE, Command
from transformer.model.layers import EncoderLayer

PATCH, STRIDE, PADDING = 4, 2, 1  # pixels; the patches overlap
FIRST = np.arange(0, 8 + 2 * PADDING - PATCH + 1, STRIDE)  # where the patches begin, down and across
PLACES = FIRST[:, None] + np.arange(PATCH)  # of the pixels of each
PATCHES = len(FIRST) ** 2


class VisionTransformer(nn.Module):
    """Images (B, 1, 8, 8) → logits (B, 10)."""

    def __init__(self, d_model: int = 64, num_heads: int = 4, num_layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Linear(PATCH * PATCH, d_model)
        self.positions = nn.Parameter(mg.random.generator().normal(0, 0.5, (PATCHES, d_model)).astype(np.float32))
        self.layers = nn.ModuleList([EncoderLayer(d_model=d_model, num_heads=num_heads, d_ff=2 * d_model, dropout=0.0,
                                                  norm="pre") for _ in range(num_layers)])
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Patches as tokens, the layers of an encoder, the mean over the tokens, a linear layer."""
        padded = mg.pad(images[:, 0], ((0, 0), (PADDING, PADDING), (PADDING, PADDING)))  # (B, 10, 10)
        patches = padded[:, PLACES[:, None, :, None], PLACES[None, :, None, :]]  # (B, 4, 4, 4, 4), down and across
        x = self.embed(patches.reshape(-1, PATCHES, PATCH * PATCH)) + self.positions  # (B, 16, D)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(axis=1))  # (B, D) -> (B, 10)


def load_images(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """All 1,797 images (N, 1, 8, 8) in [0, 1] and their digits, shuffled; and how many of them are for training."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("the images are in scikit-learn, from  pip install 'minigrad-transformer[data]', which "
                          f"cannot be imported: {error}") from error
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(digits))
    return images[order].reshape(-1, 1, 8, 8).astype(np.float32) / 16, digits[order], len(digits) * 4 // 5


def shifted(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The images, moved by up to one pixel: the same digits, elsewhere."""
    return np.roll(images, tuple(generator.integers(-1, 2, 2)), axis=(2, 3))


@click.command(cls=Command, params=[DEVICE])
@click.option("--epochs", default=50, show_default=True, help="Passes over the 1,437 images of the training.")
@click.option("--seed", default=0, show_default=True, help="Of the split, the weights and the batches.")
def main(epochs: int, seed: int, device: str) -> None:
    """Train on four fifths of the images, then read the others."""
    mg.manual_seed(seed)
    images, digits, count = load_images(seed)
    model = VisionTransformer().to(device)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    updates = epochs * (count // 64)
    schedule = optim.CosineLR(optimizer, warmup_steps=min(50, updates // 10), total_steps=updates)
    generator, started = mg.random.generator(), time.perf_counter()

    bar = tqdm(range(epochs), desc="epochs")
    for _ in bar:
        for batch in generator.permutation(count)[:count // 64 * 64].reshape(-1, 64):
            optimizer.zero_grad()
            x = Tensor(shifted(images[batch], generator), device=device)
            loss = F.cross_entropy(model(x), digits[batch])
            loss.backward()
            optim.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")

    model.eval()
    with no_grad():
        read = model(Tensor(images[count:], device=device)).argmax(axis=1).numpy()
    right = float((read == digits[count:]).mean())
    seconds = time.perf_counter() - started
    print(f"read without a mistake: {right:.1%} of {len(read)} unseen images, after {seconds:.0f} s")


if __name__ == "__main__":
    main()
