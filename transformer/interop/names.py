"""PyTorch's names of the parameters of a module: of one attention, up to a model with embeddings around its stacks.

Every tensor of a PyTorch ``state_dict`` is one parameter of this model, or several stacked: PyTorch packs W_Q, W_K and
W_V into ``in_proj_weight``. `CHILDREN` has PyTorch's names for the children of each class of modules; `pytorch_names`
walks over a module and lists the pairs of names that loading and saving follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from minigrad import nn

from transformer.model import Decoder, DecoderLayer, Encoder, EncoderLayer, MultiHeadAttention, Transformer

# Class -> PyTorch's name of each child -> its path here.
CHILDREN: dict[type[nn.Module], dict[str, str]] = {
    EncoderLayer: {
        "self_attn": "self_attention",
        "linear1": "feed_forward.inner",
        "linear2": "feed_forward.outer",
        "norm1": "self_attention_residual.norm",
        "norm2": "feed_forward_residual.norm",
    },
    DecoderLayer: {
        "self_attn": "self_attention",
        "multihead_attn": "cross_attention",
        "linear1": "feed_forward.inner",
        "linear2": "feed_forward.outer",
        "norm1": "self_attention_residual.norm",
        "norm2": "cross_attention_residual.norm",
        "norm3": "feed_forward_residual.norm",
    },
    Encoder: {"layers": "layers", "norm": "norm"},
    Decoder: {"layers": "layers", "norm": "norm"},
}
_SAME = (nn.Linear, nn.LayerNorm, nn.Embedding)  # their parameters have PyTorch's names
_PACKED = ("query", "key", "value")  # in the order in which PyTorch stacks them


@dataclass(frozen=True)
class ModelNames:
    """The names of the parts of a PyTorch model with embeddings around its ``nn.Transformer``.

    None stands for a part that the PyTorch model lacks: the part here is then neither loaded nor saved.

    Attributes:
        transformer: the ``nn.Transformer``; "" if that is the whole model.
        source_embedding, target_embedding: ``nn.Embedding`` layers; the same name twice for a shared one.
        source_positions, target_positions: ``nn.Embedding`` layers; used only if the model here learns positions, too.
        generator: the ``nn.Linear`` that computes logits.
    """

    transformer: str = "transformer"
    source_embedding: str | None = "source_embedding"
    target_embedding: str | None = "target_embedding"
    source_positions: str | None = "source_positions"
    target_positions: str | None = "target_positions"
    generator: str | None = "generator"


BARE = ModelNames("", None, None, None, None, None)
"""A ``torch.nn.Transformer`` with nothing around it: `Transformer` keeps its own embeddings and projection."""


class Pair(NamedTuple):
    """A tensor of PyTorch and the parameters here that it holds: one, or several stacked along the first axis.

    Attributes:
        theirs: PyTorch's name of the tensor.
        ours: the names of the parameters here.
    """

    theirs: str
    ours: tuple[str, ...]


def pytorch_names(module: nn.Module, prefix: str = "", names: ModelNames | None = None) -> list[Pair]:
    """PyTorch's name of each parameter of `module`.

    Args:
        module: `MultiHeadAttention`, `EncoderLayer`, `DecoderLayer`, `Encoder`, `Decoder` or `Transformer`, or a layer
            that has PyTorch's names (Linear, LayerNorm, Embedding). An `Encoder` or `Decoder` has the parts of
            ``nn.TransformerEncoder`` and ``nn.TransformerDecoder``: the layers and the final norm.
        prefix: the path of the module in PyTorch's model, such as "transformer.encoder"; "" for the whole.
        names: the parts around a ``nn.Transformer``; only with a `Transformer`, where None means ``ModelNames()``.

    Returns:
        A pair for each of PyTorch's tensors. A tied parameter has its first name here in all its pairs.

    Raises:
        TypeError: a module of another class; `names` for another module than a `Transformer`.
    """
    root = prefix.rstrip(".")
    if isinstance(module, Transformer):
        pairs = _model(module, root, ModelNames() if names is None else names)
    elif names is None:
        pairs = _walk(module, root, "")
    else:
        raise TypeError(f"names are those of the parts of a Transformer, but the module is a {type(module).__name__}")
    first: dict[int, str] = {}  # id of a parameter -> its first name here
    canonical = {name: first.setdefault(id(parameter), name)
                 for name, parameter in module.named_parameters(remove_duplicate=False)}
    return [Pair(theirs, tuple(canonical[name] for name in ours)) for theirs, ours in pairs]


def _walk(module: nn.Module, theirs: str, ours: str) -> Iterator[Pair]:
    """The pairs of a module at the path `theirs` in PyTorch's model and `ours` in this one."""
    kind = EncoderLayer if _is_decoder_only(module) else type(module)
    children = next((names for known, names in CHILDREN.items() if issubclass(kind, known)), None)
    if isinstance(module, MultiHeadAttention):
        yield from _attention(module, theirs, ours)
    elif isinstance(module, _SAME):
        yield from (Pair(_dotted(theirs, name), (_dotted(ours, name),)) for name, _ in module.named_parameters())
    elif isinstance(module, nn.ModuleList):
        for i, layer in enumerate(module):
            yield from _walk(layer, _dotted(theirs, str(i)), _dotted(ours, str(i)))
    elif children is not None:
        for their_child, our_child in children.items():
            child = _child(module, our_child)
            if child is not None:  # a stack may have no final norm
                yield from _walk(child, _dotted(theirs, their_child), _dotted(ours, our_child))
    else:
        raise TypeError("PyTorch's names are known for MultiHeadAttention, for encoder and decoder layers, for their "
                        f"stacks and for Transformer, not for {type(module).__name__}")


def _attention(module: MultiHeadAttention, theirs: str, ours: str) -> Iterator[Pair]:
    """One tensor for W_Q, W_K and W_V, unless keys or values have another width; always one for their biases."""
    if len({_child(module, name).weight.shape for name in _PACKED}) == 1:
        yield Pair(_dotted(theirs, "in_proj_weight"), tuple(_dotted(ours, f"{name}.weight") for name in _PACKED))
    else:
        for name in _PACKED:
            yield Pair(_dotted(theirs, f"{name[0]}_proj_weight"), (_dotted(ours, f"{name}.weight"),))
    if module.query.bias is not None:
        yield Pair(_dotted(theirs, "in_proj_bias"), tuple(_dotted(ours, f"{name}.bias") for name in _PACKED))
    yield from _walk(module.output, _dotted(theirs, "out_proj"), _dotted(ours, "output"))


def _model(model: Transformer, root: str, names: ModelNames) -> Iterator[Pair]:
    """The pairs of both stacks, then of the embeddings, the positions and the projection."""
    for stack in ("encoder", "decoder"):
        yield from _walk(_child(model, stack), _dotted(_dotted(root, names.transformer), stack), stack)
    tables = [(names.source_embedding, "encoder.embedding.table.weight"),
              (names.target_embedding, "decoder.embedding.table.weight")]
    if model.config.positions == "learned":
        tables += [(names.source_positions, "encoder.embedding.positions.table"),
                   (names.target_positions, "decoder.embedding.positions.table")]
    if model.projection is None:  # tied
        tables.append((names.generator, "decoder.embedding.table.weight"))
    elif names.generator is not None:
        yield from _walk(model.projection, _dotted(root, names.generator), "projection")
    yield from (Pair(_dotted(root, f"{theirs}.weight"), (ours,)) for theirs, ours in tables if theirs is not None)


def _is_decoder_only(module: nn.Module) -> bool:
    """Whether it is a layer without cross-attention: PyTorch's ``nn.TransformerEncoderLayer`` serves as that, too."""
    return isinstance(module, DecoderLayer) and module.cross_attention is None


def _child(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _dotted(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name
