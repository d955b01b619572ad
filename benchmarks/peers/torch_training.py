"""What PyTorch's versions of the model share: the weights, the batches, the step; on the CPU, or on a GPU."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from resident import MIB
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F
from workloads import BETAS, EPSILON, LEARNING_RATE, PAD, POSITIONS, Workload, shifted

from peers import Training

Batch = tuple[Tensor, Tensor, Tensor]  # source, the decoder's input, labels


class Embedded(nn.Module):
    """A Transformer's surroundings: embeddings with positions before it, the projection to the vocabulary after it."""

    positions: Tensor

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        width = workload.d_model
        self.source_embedding = nn.Embedding(workload.vocabulary, width)
        self.target_embedding = nn.Embedding(workload.vocabulary, width)
        self.generator = nn.Linear(width, workload.vocabulary, bias=False)
        self.dropout = nn.Dropout(workload.dropout)
        self.scale = math.sqrt(width)
        self.register_buffer("positions", torch.empty(workload.length, width))

    def embed(self, table: nn.Embedding, ids: Tensor, offset: int = 0) -> Tensor:
        """ids (B, T), the first at position `offset` → (B, T, D)."""
        return self.dropout(table(ids) * self.scale + self.positions[offset:offset + ids.shape[1]])


def loaded(model: Embedded, weights: str, threads: int, device: str = "cpu") -> Embedded:
    """The same model with the weights of the file, on `device`; from now on PyTorch uses so many threads."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    state = load_file(weights)
    if len(model.positions) > len(state[POSITIONS]):
        raise ValueError(f"{weights} has {len(state[POSITIONS])} positions, {len(model.positions)} are needed")
    state[POSITIONS] = state[POSITIONS][:len(model.positions)]
    model.load_state_dict(state)
    return model.to(device)


def prepare(source: np.ndarray, labels: np.ndarray, device: str | torch.device = "cpu") -> Batch:
    """A batch as tensors on `device`."""
    source, target, labels = (torch.from_numpy(ids).to(device) for ids in (source, shifted(labels), labels))
    return source, target, labels


def training(model: Embedded, called: nn.Module | None = None) -> Training:
    """How `model` is trained where it is; in training, `called` is called in its place: the same, compiled."""
    device = model.positions.device
    called = model if called is None else called
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0,
                                  fused=True)

    def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)

    def step(batch: Batch) -> Tensor:
        source, target, labels = batch
        optimizer.zero_grad()
        loss = cross_entropy(called(source, target), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def loss(batch: Batch) -> float:
        source, target, labels = batch
        model.eval()
        with torch.no_grad():
            value = cross_entropy(model(source, target), labels).item()
        model.train()
        return value

    if device.type == "cpu":
        return Training(prepare, step, loss)
    return Training(partial(prepare, device=device), step, loss, torch.cuda.synchronize,
                    lambda: torch.cuda.max_memory_reserved() / MIB)
