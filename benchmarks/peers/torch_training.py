"""PyTorch, eager: a Transformer by hand around ``scaled_dot_product_attention``, on the CPU or on a GPU.

It is faster than ``nn.Transformer``, and has the same names of parameters: one product for queries, keys and values,
fused attention without a mask wherever there is no padding, and the causal mask as a flag. The flag is enough where the
target is padded, too: padding comes last, so no real token sees any. AdamW is the fused one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
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


class Attention(nn.Module):
    """Multi-head attention; the parameters are those of ``nn.MultiheadAttention``."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        width = workload.d_model
        self.heads, self.p = workload.heads, workload.dropout
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width))
        self.out_proj = nn.Linear(width, width)

    def project(self, x: Tensor, first: int, last: int) -> tuple[Tensor, ...]:
        """Of queries, keys and values those from `first` up to `last`: (B, T, D) → each (B, H, T, D/H)."""
        width = x.shape[-1]
        rows = slice(first * width, last * width)
        projected = F.linear(x, self.in_proj_weight[rows], self.in_proj_bias[rows])
        parts = projected.unflatten(-1, (last - first, self.heads, width // self.heads))
        return parts.permute(2, 0, 3, 1, 4).unbind()

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None,
               causal: bool = False) -> Tensor:
        """Each (B, H, T, D/H) → (B, T, D); `mask` is True where one may attend."""
        out = F.scaled_dot_product_attention(queries, keys, values, mask, self.p if self.training else 0.0, causal)
        return self.out_proj(out.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, pre-norm; the parameters are those of ``nn.TransformerEncoderLayer``."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        width = workload.d_model
        self.self_attn = Attention(workload)
        self.linear1, self.linear2 = nn.Linear(width, workload.d_ff), nn.Linear(workload.d_ff, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(workload.dropout)

    def feed_forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        return self.dropout(self.linear2(self.dropout(F.relu(self.linear1(x)))))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(B, S, D) → (B, S, D)."""
        x = x + self.dropout(self.self_attn.attend(*self.self_attn.project(self.norm1(x), 0, 3), mask))
        return x + self.feed_forward(self.norm2(x))


class DecoderLayer(EncoderLayer):
    """The same with cross-attention; the parameters are those of ``nn.TransformerDecoderLayer``."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.multihead_attn = Attention(workload)
        self.norm3 = nn.LayerNorm(workload.d_model)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """(B, T, D) and the encoder's (B, S, D) → (B, T, D)."""
        x = x + self.dropout(self.self_attn.attend(*self.self_attn.project(self.norm1(x), 0, 3), causal=True))
        x = x + self.dropout(self.cross_attention(self.norm2(x), *self.multihead_attn.project(memory, 1, 3), mask))
        return x + self.feed_forward(self.norm3(x))

    def cross_attention(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """(B, T, D) and the memory's keys and values (B, H, S, D/H) → (B, T, D)."""
        (queries,) = self.multihead_attn.project(x, 0, 1)
        return self.multihead_attn.attend(queries, keys, values, mask)


class Stack(nn.Module):
    """The embeddings, the layers and the final norm of encoder or decoder."""

    def __init__(self, layers: list[nn.Module], table: nn.Embedding) -> None:
        super().__init__()
        self.embedding = nn.ModuleDict({"table": table})
        self.layers, self.norm = nn.ModuleList(layers), nn.LayerNorm(table.embedding_dim)

    def forward(self, x: Tensor, *inputs: Tensor | None) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        for layer in self.layers:
            x = layer(x, *inputs)
        return self.norm(x)


class TransformerByHand(nn.Module):
    """The whole model."""

    positions: Tensor

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        width, numbers = workload.d_model, range(workload.layers)
        self.padded = workload.padded
        self.projection = nn.Linear(width, workload.vocabulary, bias=False)
        self.dropout = nn.Dropout(workload.dropout)
        self.scale = math.sqrt(width)
        self.register_buffer("positions", torch.empty(workload.length, width))
        self.encoder = Stack([EncoderLayer(workload) for _ in numbers], nn.Embedding(workload.vocabulary, width))
        self.decoder = Stack([DecoderLayer(workload) for _ in numbers], nn.Embedding(workload.vocabulary, width))

    def embed(self, stack: Stack, ids: Tensor, offset: int = 0) -> Tensor:
        """ids (B, T), the first at position `offset` → (B, T, D)."""
        return self.dropout(stack.embedding["table"](ids) * self.scale + self.positions[offset:offset + ids.shape[1]])

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor | None]:
        """ids (B, S) → the memory (B, S, D), and who may attend to it, (B, 1, 1, S)."""
        mask = (source != PAD)[:, None, None, :] if self.padded else None
        return self.encoder(self.embed(self.encoder, source), mask), mask

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """ids (B, S) and (B, T) → logits (B, T, V)."""
        memory, mask = self.encode(source)
        return self.projection(self.decoder(self.embed(self.decoder, target), memory, mask))


def loaded(workload: Workload, weights: str, threads: int, device: str = "cpu") -> TransformerByHand:
    """The model with the weights of the file, on `device`; from now on PyTorch uses so many threads."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, state = TransformerByHand(workload), load_file(weights)
    state[POSITIONS] = state[POSITIONS][:len(model.positions)]
    model.load_state_dict(state)
    return model.to(device)


def prepare(source: np.ndarray, labels: np.ndarray, device: str | torch.device = "cpu") -> Batch:
    """A batch as tensors on `device`."""
    source, target, labels = (torch.from_numpy(ids).to(device) for ids in (source, shifted(labels), labels))
    return source, target, labels


@contextmanager
def trainer(workload: Workload, weights: str, threads: int, device: str = "cpu") -> Iterator[Training]:
    """See `peers`."""
    model = loaded(workload, weights, threads, device)
    optimizer = adamw(model)

    def cross_entropy(batch: Batch) -> Tensor:
        source, target, labels = batch
        return F.cross_entropy(model(source, target).flatten(0, 1), labels.flatten(), ignore_index=PAD)

    def step(batch: Batch) -> Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def loss(batch: Batch) -> float:
        model.eval()
        with torch.no_grad():
            value = cross_entropy(batch).item()
        model.train()
        return value

    if device == "cpu":
        yield Training(prepare, step, loss)
    else:
        yield Training(partial(prepare, device=device), step, loss, torch.cuda.synchronize,
                       lambda: torch.cuda.max_memory_reserved() / MIB)


def adamw(model: nn.Module) -> torch.optim.AdamW:
    """The optimizer of the benchmarks."""
    return torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0,
                             fused=True)
