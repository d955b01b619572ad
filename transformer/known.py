"""Whether a shortcut may take the model's place: whether every part of it is what `transformer.model` defines.

Packed training (`transformer.training.packed`) computes what the model computes in another way; so does the explorer's
page, in JavaScript (`transformer.explore.live`). They know the modules of `transformer.model` and no others. A model
with another class among its modules, another activation, hooks, or a method that was replaced, on an instance or on a
class, runs as it is written. Functions are not checked: to change what a model computes, replace a method or a module.
"""

from __future__ import annotations

from typing import Any

from minigrad import nn

from transformer.model import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    LearnedPositions,
    MultiHeadAttention,
    Residual,
    SinusoidalPositions,
    TokenEmbedding,
    Transformer,
)
from transformer.model.layers import ACTIVATIONS

Kinds = dict[str, tuple[type[nn.Module], ...]]

_STACK: Kinds = {"embedding": (TokenEmbedding,), "layers": (nn.ModuleList,), "norm": (nn.LayerNorm,)}
_ENCODER_LAYER: Kinds = {"self_attention": (MultiHeadAttention,), "self_attention_residual": (Residual,),
                         "feed_forward": (FeedForward,), "feed_forward_residual": (Residual,)}

# The parts of each class of module, by the attribute that holds them. Those of a ModuleList are checked by its stack.
PARTS: dict[type[nn.Module], Kinds] = {
    Transformer: {"encoder": (Encoder,), "decoder": (Decoder,), "projection": (nn.Linear,)},
    Encoder: _STACK,
    Decoder: _STACK,
    TokenEmbedding: {"table": (nn.Embedding,), "positions": (SinusoidalPositions, LearnedPositions),
                     "dropout": (nn.Dropout,)},
    EncoderLayer: _ENCODER_LAYER,
    DecoderLayer: {**_ENCODER_LAYER, "cross_attention": (MultiHeadAttention,), "cross_attention_residual": (Residual,)},
    MultiHeadAttention: dict.fromkeys(("query", "key", "value", "output"), (nn.Linear,)),
    FeedForward: {"inner": (nn.Linear,), "outer": (nn.Linear,), "dropout": (nn.Dropout,)},
    Residual: {"norm": (nn.LayerNorm,), "dropout": (nn.Dropout,)},
    nn.ModuleList: {},
    **{leaf: {} for leaf in (nn.Linear, nn.LayerNorm, nn.Embedding, nn.Dropout, SinusoidalPositions, LearnedPositions)},
}
_LAYER_OF: dict[type[nn.Module], type[nn.Module]] = {Encoder: EncoderLayer, Decoder: DecoderLayer}

# The methods that the shortcuts stand for, as the classes have them when this module is imported, inherited ones too.
_NAMES = ("__call__", "forward", "transform", "encode", "decode", "logits", "loss", "memory_mask", "source_ids",
          "target_ids")
_METHODS = [(cls, name, getattr(cls, name)) for cls in PARTS for name in _NAMES if hasattr(cls, name)]
_ON_INSTANCES = frozenset(_NAMES)


def is_known(model: nn.Module) -> bool:
    """Whether the shortcuts know all of a model."""
    if type(model) is not Transformer or any(getattr(cls, name) is not method for cls, name, method in _METHODS):
        return False
    unseen: list[nn.Module] = [model]
    while unseen:
        module = unseen.pop()
        if not _is_known(module):
            return False
        unseen += module.children()
    return True


def _is_known(module: Any) -> bool:
    """Whether a module of a known class, its own parts included, is as the class makes it."""
    attributes, kinds = vars(module), PARTS[type(module)]
    if ("_hooks" in attributes and module.has_hooks) or not _ON_INSTANCES.isdisjoint(attributes):
        return False
    if "activation" in attributes and module.activation not in ACTIVATIONS.values():
        return False
    if type(module) is DecoderLayer and None in (module.cross_attention, module.cross_attention_residual):
        return False
    if type(module) in _LAYER_OF and any(type(part) is not _LAYER_OF[type(module)] for part in attributes["layers"]):
        return False
    return type(module) is nn.ModuleList or all(
        type(part) in kinds.get(name, ()) for name, part in attributes.items() if isinstance(part, nn.Module))
