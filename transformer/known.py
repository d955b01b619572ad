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


def _methods(cls: type) -> dict[str, object]:
    """The methods and properties that a class itself defines."""
    return {name: value for name, value in vars(cls).items() if isinstance(value, FunctionType | property)}


# What the classes of the modules, and those that they inherit from, define as they are imported, and how many
# attributes each has: another number shows that one was added.
_METHODS = {cls: _methods(cls) for known in PARTS for cls in known.__mro__ if cls is not object}
_COUNTS = {cls: len(vars(cls)) for cls in _METHODS}
_NAMES = frozenset(name for methods in _METHODS.values() for name in methods)


def _is_patched(cls: type) -> bool:
    """Whether a method of the class was replaced, or one that it inherits overridden, since it was defined."""
    own, methods = vars(cls), _METHODS[cls]
    if any(own.get(name) is not method for name, method in methods.items()):
        return True
    if len(own) == _COUNTS[cls]:
        return False
    inherited = {name: value for base in reversed(cls.__mro__[1:]) for name, value in _methods(base).items()}
    if any(inherited.get(name) is not value for name, value in _methods(cls).items() if name not in methods):
        return True
    _COUNTS[cls] = len(own)  # what was added is no method: `copy.deepcopy` writes such an attribute
    return False


def unknown_part(model: nn.Module) -> str | None:
    """The first part of `model` that the fast paths do not support, in words; None if they support all parts."""
    if type(model) is not Transformer:
        return f"the model is a {type(model).__name__}"
    for cls in _METHODS:
        if _is_patched(cls):
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
