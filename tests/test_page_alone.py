"""Without kernels, mixed precision, instruments and compatibility, minigrad trains a model, and its tests pass."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*arguments: str, timeout: float) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def run_tests(*paths: str, timeout: float) -> None:
    told = run("-m", "pytest", "-q", "-p", "tests.page_alone", "-p", "no:cacheprovider", *paths, timeout=timeout)
    assert " passed" in told


def losses_of_the_copy_task(steps: int) -> list[float]:
    """Train a small causal model to repeat what it has read, of the page's parts alone."""
    import numpy as np

    from minigrad import functional as F
    from minigrad import manual_seed, nn, optim

    vocabulary, length, width, heads = 8, 5, 32, 2

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary + 1, width)
            self.positions = nn.Embedding(2 * length, width)
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
            self.project = nn.Linear(width, 3 * width)
            self.mix = nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
            self.dropout = nn.Dropout(0.0)

        def forward(self, ids):
            batch, time = ids.shape
            x = self.tokens(ids) + self.positions(np.arange(time))
            q, k, v = self.project(self.norms[0](x)).reshape(batch, time, 3 * heads, -1).swapaxes(1, 2).split(heads, 1)
            seen = np.tril(np.ones((time, time), bool))
            attended = F.scaled_dot_product_attention(q, k, v, seen).swapaxes(1, 2).reshape(batch, time, width)
            x = x + self.dropout(self.mix(attended))
            x = x + self.down(F.gelu(self.up(self.norms[1](x))))
            return F.linear(self.norms[2](x), self.tokens.weight)

    manual_seed(0)
    draw, model = np.random.default_rng(0), Model()
    optimizer, losses = optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(steps):
        words = draw.integers(0, vocabulary, (32, length))
        ids = np.concatenate([words, np.full((32, 1), vocabulary), words], axis=1)
        loss = F.cross_entropy(model(ids[:, :-1])[:, length:], ids[:, length + 1:])
        optimizer.zero_grad()
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_model_learns_to_copy():
    script = ("import tests.page_alone; from tests.test_page_alone import losses_of_the_copy_task as train; "
              "print(*train(150))")
    losses = [float(word) for word in run("-c", script, timeout=60).split()]
    assert losses[0] > 2
    assert max(losses[-10:]) < 0.3


def test_some_of_the_run_tests():
    run_tests("tests/minigrad/nn", "tests/minigrad/optim", "tests/minigrad/ops/test_methods.py",
               "tests/minigrad/functional/test_attention.py", timeout=120)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_tests_of_operations_and_functions_pass():
    run_tests("tests/minigrad/ops", "tests/minigrad/functional", timeout=1200)
