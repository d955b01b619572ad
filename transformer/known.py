"""Which models the fast paths support: those whose every part is as `transformer.model` defines it.

Packed training (`transformer.training.packed`) and decoding on arrays (`transformer.decode.next_token`) compute the
same results as the model's own methods, in less time. They support the modules of `transformer.model` alone. A model
with a module of another class, with hooks, or with a replaced method, on an instance or a class, runs its own methods.
"""

from __future__ import annotations

from types import FunctionType

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

Kinds = dict[str, tuple[type[nn.Module], ...]]

_STACK: Kinds = {"embedding": (TokenEmbedding,), "layers": (nn.ModuleList,), "norm": (nn.LayerNorm,)}
_ENCODER_LAYER: Kinds = {"self_attention": (MultiHeadAttention,), "self_attention_residual": (Residual,),
                         "feed_forward": (FeedForward,), "feed_forward_residual": (Residual,)}

# For each class of module, the classes that each attribute may hold; a ModuleList holds layers.
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
_LAYERS = (EncoderLayer, DecoderLayer)


def _methods(cls: type) -> tuple[int, list[tuple[str, object]]]:
    """The number of attributes that a class defines, and its methods and properties."""
    methods = [(name, value) for name, value in vars(cls).items() if isinstance(value, FunctionType | property)]
    return len(vars(cls)), methods


# The methods of these classes and of their base classes at import, before anything can replace them.
_METHODS = {cls: _methods(cls) for known in PARTS for cls in known.__mro__ if cls is not object}
_NAMES = frozenset(name for _, methods in _METHODS.values() for name, _ in methods)


def unknown_part(model: nn.Module) -> str | None:
    """The first part of `model` that the fast paths do not support, in words; None if they support all parts."""
    if type(model) is not Transformer:
        return f"the model is a {type(model).__name__}"
    for cls, (count, methods) in _METHODS.items():
        own = vars(cls)
        if len(own) != count or any(own.get(name) is not method for name, method in methods):
            return f"methods of {cls.__name__} were replaced"
    unseen: list[tuple[str, nn.Module]] = [("", model)]
    while unseen:
        path, module = unseen.pop()
        attributes, kinds = vars(module), PARTS[type(module)]
        if "_hooks" in attributes and module.has_hooks:
            return f"{path or 'the model'} has hooks"
        if not _NAMES.isdisjoint(attributes):
            return f"a method of {path or 'the model'} was replaced"
        for name, part in attributes.items():
            if isinstance(part, nn.Module):
                inner = f"{path}.{name}" if path else name
                if type(part) not in (_LAYERS if type(module) is nn.ModuleList else kinds.get(name, ())):
                    return f"{inner} is a {type(part).__name__}"
                unseen.append((inner, part))
    return None
