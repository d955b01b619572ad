"""Without kernels, mixed precision and instruments, minigrad trains a model, and its tests pass."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from minigrad import functional as F
from minigrad import manual_seed, nn, optim

ROOT = Path(__file__).parents[1]


def run(*arguments, timeout):
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def losses_of_the_copy_task(steps):
    """Train a small causal model to repeat what it has read, of the page's parts alone."""
    words, length, width, heads = 8, 5, 32, 2

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(words + 1, width), nn.Embedding(2 * length, width)
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.project, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, ids):
            time = ids.shape[1]
            x = self.tokens(ids) + self.positions(np.arange(time))
            qkv = self.project(self.norms[0](x)).chunk(3, -1)
            attended = F.multi_head_attention(*qkv, heads, np.tri(time, dtype=bool))
            x = x + self.mix(F.gelu(attended))
            return F.linear(self.norms[1](x), self.tokens.weight)

    manual_seed(0)
    draw, model = np.random.default_rng(0), Model()
    optimizer, losses = optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(steps):
        read = draw.integers(0, words, (32, length))
        ids = np.concatenate([read, np.full((32, 1), words), read], axis=1)
        loss = F.cross_entropy(model(ids[:, :-1])[:, length:], ids[:, length + 1:])
        optimizer.zero_grad()
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_model_learns_to_copy():
    script = ("import tests.page_alone; from tests.test_page_alone import losses_of_the_copy_task as train; "
              "print(*train(120))")
    losses = [float(word) for word in run("-c", script, timeout=60).split()]
    assert losses[0] > 2
    assert max(losses[-10:]) < 0.1


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_tests_of_operations_and_functions_pass():
    folders = [f"tests/minigrad/{folder}" for folder in ("ops", "functional", "nn", "optim")]
    told = run("-m", "pytest", "-q", "-p", "tests.page_alone", "-p", "no:cacheprovider", *folders, timeout=1200)
    assert " passed" in told
