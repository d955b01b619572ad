"""PyTorch, eager: ``nn.Transformer`` with its masks, as its documentation uses it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from workloads import PAD, Workload

from peers import Training
from peers.torch_training import Embedded, loaded, training


class TransformerOfPyTorch(Embedded):
    """``nn.Transformer`` with its surroundings; padding masks where the workload has padding."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.padded = workload.padded
        with warnings.catch_warnings():  # nested tensors, which are for inference, do not go with norm_first
            warnings.filterwarnings("ignore", "enable_nested_tensor")
            self.transformer = nn.Transformer(
                workload.d_model, workload.heads, workload.layers, workload.layers, workload.d_ff, workload.dropout,
                batch_first=True, norm_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """ids (B, S) and (B, T) → logits (B, T, V)."""
        length = target.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)  # as the padding masks are
        source_padding, target_padding = (source == PAD, target == PAD) if self.padded else (None, None)
        hidden = self.transformer(
            self.embed(self.source_embedding, source), self.embed(self.target_embedding, target), tgt_mask=later,
            src_key_padding_mask=source_padding, tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=source_padding, tgt_is_causal=True)
        return self.generator(hidden)


@contextmanager
def trainer(workload: Workload, weights: str, threads: int, device: str = "cpu") -> Iterator[Training]:
    """See `peers`."""
    yield training(loaded(TransformerOfPyTorch(workload), weights, threads, device))
