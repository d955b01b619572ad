"""Where a token stands: added to its embedding, since attention itself sees no order."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import Tensor, nn
from minigrad.device import is_array
from minigrad.nn import init


def sinusoid(length: int, d_model: int, layout: str = "interleaved", first_position: int = 0) -> np.ndarray:
    """The table of "Attention is all you need", section 3.5: (length, d_model), float64.

    Args:
        layout: "interleaved", as in the paper: PE[p, 2i] = sin(p / 10000^(2i/d)), PE[p, 2i+1] = the cosine. "halves",
            as in Tensor2Tensor and OpenNMT: all sines, then all cosines, with frequencies 10000^(-i/(d/2 - 1)).
        first_position: the position p of the first row.
    """
    p = np.arange(first_position, first_position + length)[:, None]
    i = np.arange(d_model // 2)
    if layout == "interleaved":
        angles = p * 10000.0 ** (-2 * i / d_model)
        table = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    else:
        angles = p * 10000.0 ** (-i / max(1, d_model / 2 - 1))
        table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return table.reshape(length, d_model)


class Positions(nn.Module):
    """A vector for each position, ``positions(length, offset)``: (length, d_model), which is added to the embeddings.

    Args:
        max_length: the most tokens of a text, and the rows of the table that the subclasses define.
        d_model: the width of the embeddings.
    """

    table: Tensor  # (max_length, d_model)

    def forward(self, length: int, offset: Any = 0) -> Tensor:
        """The rows for tokens offset … offset + length: (length, d_model); of one token alone `offset` may be an array.
        """
        if is_array(offset):  # (1,), on the device
            return self.table[offset]
        if offset + length > self.table.shape[0]:
            raise ValueError(f"a sequence of {offset + length} tokens is longer than the model's "
                             f"{self.table.shape[0]} positions (max_length)")
        return self.table[offset:offset + length]


class SinusoidalPositions(Positions):
    """Fixed positions, with the `layout` and the `first_position` of `sinusoid`.

    They are not saved with the parameters, since they follow from the configuration.
    """

    def __init__(self, max_length: int, d_model: int, layout: str = "interleaved", first_position: int = 0) -> None:
        super().__init__()
        table = Tensor(sinusoid(max_length, d_model, layout, first_position), np.float32)
        self.register_buffer("table", table, persistent=False)


class LearnedPositions(Positions):
    """One learned vector for each position."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(np.zeros((max_length, d_model), np.float32))
        init.normal_(self.table, std=d_model ** -0.5)
