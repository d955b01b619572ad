"""The Transformer as a function of its parameters, for libraries that differentiate functions: JAX, HIPS autograd.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workloads import PAD, Workload

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Library:
    """What the model needs of a library.

    Attributes:
        np: its counterpart of NumPy.
        softmax, log_softmax: along the last axis.
    """

    np: Any
    softmax: Callable[[Any], Any]
    log_softmax: Callable[[Any], Any]


class Model:
    """The forward pass.

    Args:
        library: what computes.
        workload: the sizes.
        parameters: by PyTorch's names.
        positions: the table, (at least the greatest length, D).
        drop: dropout, of one array; the identity in evaluation.
    """

    def __init__(self, library: Library, workload: Workload, parameters: Parameters, positions: Any,
                 drop: Callable[[Any], Any]) -> None:
        self.library, self.np = library, library.np
        self.workload, self.parameters, self.positions, self.drop = workload, parameters, positions, drop

    def loss(self, source: Any, target: Any, labels: Any) -> Any:
        """ids, each (B, T) → the mean cross-entropy of the labels that are no padding."""
        log_probabilities = self.library.log_softmax(self.logits(source, target))
        batch, length = labels.shape
        rows, columns = self.np.arange(batch)[:, None], self.np.arange(length)
        real = (labels != PAD).astype(log_probabilities.dtype)
        return -self.np.sum(log_probabilities[rows, columns, labels] * real) / self.np.sum(real)

    def logits(self, source: Any, target: Any) -> Any:
        """ids (B, S) and (B, T) → (B, T, V)."""
        padding = self.np.where(source == PAD, -1e9, 0.0)[:, None, None, :] if self.workload.padded else None
        length = target.shape[1]
        later = self.np.where(self.np.tri(length) == 0, -1e9, 0.0)  # padding comes last: no real token sees any
        memory = self.embed("source_embedding", source)
        for i in range(self.workload.layers):
            name = f"transformer.encoder.layers.{i}"
            y = self.norm(memory, f"{name}.norm1")
            memory = memory + self.drop(self.attention(y, y, f"{name}.self_attn", padding))
            memory = memory + self.feed_forward(self.norm(memory, f"{name}.norm2"), name)
        memory = self.norm(memory, "transformer.encoder.norm")
        x = self.embed("target_embedding", target)
        for i in range(self.workload.layers):
            name = f"transformer.decoder.layers.{i}"
            y = self.norm(x, f"{name}.norm1")
            x = x + self.drop(self.attention(y, y, f"{name}.self_attn", later))
            y = self.norm(x, f"{name}.norm2")
            x = x + self.drop(self.attention(y, memory, f"{name}.multihead_attn", padding))
            x = x + self.feed_forward(self.norm(x, f"{name}.norm3"), name)
        return self.norm(x, "transformer.decoder.norm") @ self.parameters["generator.weight"].T

    def embed(self, name: str, ids: Any) -> Any:
        """ids (B, T) → (B, T, D)."""
        scaled = self.parameters[f"{name}.weight"][ids] * math.sqrt(self.workload.d_model)
        return self.drop(scaled + self.positions[:ids.shape[1]])

    def norm(self, x: Any, name: str) -> Any:
        """Layer norm of the last axis."""
        centred = x - self.np.mean(x, axis=-1, keepdims=True)
        variance = self.np.mean(centred * centred, axis=-1, keepdims=True)
        normalised = centred / self.np.sqrt(variance + 1e-5)
        return normalised * self.parameters[f"{name}.weight"] + self.parameters[f"{name}.bias"]

    def linear(self, x: Any, name: str) -> Any:
        """(…, in) → (…, out)."""
        return x @ self.parameters[f"{name}.weight"].T + self.parameters[f"{name}.bias"]

    def feed_forward(self, x: Any, name: str) -> Any:
        """(B, T, D) → (B, T, D)."""
        hidden = self.drop(self.np.maximum(self.linear(x, f"{name}.linear1"), 0))
        return self.drop(self.linear(hidden, f"{name}.linear2"))

    def attention(self, x: Any, memory: Any, name: str, bias: Any) -> Any:
        """Queries from `x` (B, T, D), keys and values from `memory` (B, S, D) → (B, T, D); `bias` is for the scores."""
        width = self.workload.d_model
        weight, offset = self.parameters[f"{name}.in_proj_weight"], self.parameters[f"{name}.in_proj_bias"]
        if x is memory:
            projected = x @ weight.T + offset
            queries, keys, values = (projected[..., i * width:(i + 1) * width] for i in range(3))
        else:
            queries = x @ weight[:width].T + offset[:width]
            projected = memory @ weight[width:].T + offset[width:]
            keys, values = projected[..., :width], projected[..., width:]
        queries, keys, values = (self.split_heads(part) for part in (queries, keys, values))
        scores = queries @ self.np.swapaxes(keys, 2, 3) / math.sqrt(width // self.workload.heads)
        if bias is not None:
            scores = scores + bias.astype(scores.dtype)
        context = self.drop(self.library.softmax(scores)) @ values  # (B, H, T, D/H)
        joined = self.np.reshape(self.np.swapaxes(context, 1, 2), x.shape)
        return self.linear(joined, f"{name}.out_proj")

    def split_heads(self, x: Any) -> Any:
        """(B, T, D) → (B, H, T, D/H)."""
        batch, length, width = x.shape
        heads = self.workload.heads
        return self.np.swapaxes(self.np.reshape(x, (batch, length, heads, width // heads)), 1, 2)
