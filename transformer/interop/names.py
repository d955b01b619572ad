"""PyTorch's names of the parameters and persistent buffers of a module.

A tensor of PyTorch is one parameter here, or several stacked: PyTorch packs W_Q, W_K and W_V into ``in_proj_weight``.
The parts of a Transformer have PyTorch's names, and all else that of its attribute.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from minigrad import nn

from transformer.model import Decoder, DecoderLayer, Encoder, EncoderLayer, LearnedPositions, MultiHeadAttention

_ENCODER_LAYER = {
    "self_attention": "self_attn",
    "feed_forward.inner": "linear1",
    "feed_forward.outer": "linear2",
    "self_attention_residual.norm": "norm1",
    "feed_forward_residual.norm": "norm2",
}
_DECODER_LAYER = _ENCODER_LAYER | {
    "cross_attention": "multihead_attn",
    "cross_attention_residual.norm": "norm2",
    "feed_forward_residual.norm": "norm3",
}


def pytorch_names(module: nn.Module) -> dict[str, list[str]]:
    """PyTorch's name of each tensor of ``module.state_dict()``, and the names here of what it holds.

    Args:
        module: any module. An `Encoder` or `Decoder` by itself has the parts of ``nn.TransformerEncoder`` and
            ``nn.TransformerDecoder``, the layers and the final norm, and not its embedding.

    Returns:
        For each of PyTorch's tensors one name here, or several, which it holds stacked along the first axis.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"PyTorch's names: expected a module of minigrad, got a {type(module).__name__}")
    names: dict[str, list[str]] = {}
    for name in module.state_dict():
        if not (isinstance(module, Encoder | Decoder) and name.startswith("embedding.")):
            names.setdefault(_theirs(module, name), []).append(name)
    return names


def _theirs(module: Any, name: str) -> str:
    """PyTorch's name of the tensor `name` of a module."""
    if not name:
        return ""
    here = f"{name}."
    ours = next((part for part in _parts(module) if here.startswith(f"{part}.")), name.partition(".")[0])
    inner = attrgetter(ours)(module)
    return f"{_parts(module).get(ours, ours)}.{_theirs(inner, name[len(ours) + 1:])}".rstrip(".")


def _parts(module: Any) -> dict[str, str]:
    """PyTorch's names of those parts of a module that are called otherwise here, by their paths here."""
    if isinstance(module, MultiHeadAttention):
        return _packed(module) | {"output": "out_proj"}
    if isinstance(module, EncoderLayer) or (isinstance(module, DecoderLayer) and module.cross_attention is None):
        return _ENCODER_LAYER  # PyTorch has no other layer for a decoder without an encoder
    if isinstance(module, DecoderLayer):
        return _DECODER_LAYER
    return {"table": "weight"} if isinstance(module, LearnedPositions) else {}


def _packed(module: MultiHeadAttention) -> dict[str, str]:
    """One tensor for W_Q, W_K and W_V, unless keys or values have another width; always one for their biases."""
    state = module.state_dict()
    names: dict[str, str] = {}
    for kind in ("weight", "bias"):
        found = [f"{part}.{kind}" for part in ("query", "key", "value")]
        if all(name in state for name in found):
            packed = len({state[name].shape for name in found}) == 1
            names |= {name: f"in_proj_{kind}" if packed else f"{name[0]}_proj_{kind}" for name in found}
    return names
