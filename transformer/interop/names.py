"""PyTorch's names of the parameters and persistent buffers of a module.

A tensor of PyTorch is one parameter here, or several stacked: PyTorch packs W_Q, W_K and W_V into ``in_proj_weight``.
`CHILDREN` has PyTorch's names for the parts of those classes that PyTorch has, too; in all other modules, attributes
have the same names on both sides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from minigrad import Tensor, nn

from transformer.interop.rename import Entry, Fused, Rename, by_function, by_map
from transformer.model import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    LearnedPositions,
    MultiHeadAttention,
    Transformer,
)

# Class -> PyTorch's name of a child or a parameter -> its path here; in PyTorch's order.
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
    LearnedPositions: {"weight": "table"},  # an ``nn.Embedding``
}
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


def pytorch_names(module: nn.Module, prefix: str = "", names: ModelNames | None = None,
                  rename: Rename | None = None) -> list[Pair]:
    """PyTorch's name of each parameter and persistent buffer of `module`.

    Args:
        module: any module. Within it, `MultiHeadAttention`, `EncoderLayer`, `DecoderLayer`, `Encoder`, `Decoder`,
            `Transformer` and `LearnedPositions` have the names of PyTorch's modules, and other modules those of their
            attributes. An `Encoder` or `Decoder` by itself has the parts of ``nn.TransformerEncoder`` and
            ``nn.TransformerDecoder``: the layers and the final norm.
        prefix: the path of the module in PyTorch's model, such as "transformer.encoder"; "" for the whole.
        names: the parts around a ``nn.Transformer``; None means ``ModelNames()``.
        rename: for other names than these, a dictionary from their names, below `prefix`, to the names here: those of
            ``module.state_dict()`` or PyTorch's. A name stands for itself and all that follows it after a dot,
            ``{"ln_f": "norm"}``, and ``{}`` for anything without a dot, in the same order on both sides. Of several for
            one parameter the most specific counts; equal ones are tied. A name here may be `Fused` or `transposed`.

    Returns:
        A pair for each of PyTorch's tensors. A tied parameter has its first name here in all its pairs.

    Raises:
        TypeError: no module; `names` for a module without a `Transformer`; a `rename` that is no such dictionary.
        ValueError: a `rename` with other ``{}`` on one side, or with an entry for parameters that are not there.
    """
    return [Pair(theirs, fused.names) for theirs, fused in entries(module, prefix, names, rename)]


def entries(module: nn.Module, prefix: str, names: ModelNames | None, rename: Rename | None,
            given: Collection[str] | None = None) -> list[Entry]:
    """The pairs of `pytorch_names`, and how each tensor holds its parameters.

    Args:
        given: the names of a state, without the prefix, for a `rename` that is a function.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"PyTorch's names: expected a module of minigrad, got a {type(module).__name__}")
    if names is not None and not any(isinstance(part, Transformer) for part in module.modules()):
        raise TypeError(f"names are those of the parts of a Transformer, and a {type(module).__name__} has none")
    state = module.state_dict()
    around = {name for name in state if isinstance(module, Encoder | Decoder) and name.startswith("embedding.")}
    found: Iterable[Entry] = _walk(module, "", "", ModelNames() if names is None else names, around)
    if isinstance(rename, Mapping):
        found = by_map(found, rename)
    elif rename is not None:
        if given is None:
            raise TypeError("rename: a function leads from PyTorch's names to the names here alone; give a dictionary, "
                            f"which leads back, too, got a {type(rename).__name__}")
        found = by_function(found, rename, given)
    first: dict[int, str] = {}  # id of a tensor -> its first name here
    tensors = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    canonical = {name: first.setdefault(id(tensor), name) for name, tensor in tensors if name in state}
    result: dict[Entry, None] = {}  # in order, each once
    for theirs, fused in found:
        absent = [name for name in fused.names if name not in canonical]
        if absent:
            raise ValueError(f"rename: {theirs} would hold {', '.join(absent)}, which a {type(module).__name__} lacks")
        fused = replace(fused, names=tuple(canonical[name] for name in fused.names))
        result[_dotted(prefix.rstrip("."), theirs), fused] = None
    return list(result)


def _walk(part: nn.Module | Tensor, theirs: str, ours: str, names: ModelNames, skip: set[str]) -> Iterator[Entry]:
    """The entries of what is at the path `theirs` in PyTorch's model and `ours` in this one, but those in `skip`."""
    if isinstance(part, Tensor):
        if ours not in skip:
            yield theirs, Fused((ours,))
        return
    done = set(skip)
    for their, paths in _differing(part, names):
        found: list[Entry]
        if isinstance(paths, tuple):
            found = [(_dotted(theirs, their), Fused(tuple(_dotted(ours, path) for path in paths)))]
        else:
            child = _child(part, paths)
            at = _dotted(theirs, their), _dotted(ours, paths)
            found = [] if child is None else list(_walk(child, *at, names, skip))
        found = [entry for entry in found if not skip.issuperset(entry[1].names)]
        done.update(name for _, fused in found for name in fused.names)
        if their is not None:
            yield from found
    own: list[tuple[str, nn.Module | Tensor]] = [item for item in part.state_dict().items() if "." not in item[0]]
    for name, value in (*own, *part.named_children()):
        yield from _walk(value, _dotted(theirs, name), _dotted(ours, name), names, done)


def _differing(module: nn.Module, names: ModelNames) -> Iterator[tuple[str | None, str | tuple[str, ...]]]:
    """PyTorch's name, None if it has none, and the path here, or the paths of what is stacked."""
    if isinstance(module, Transformer):
        yield from _model(module, names)
    elif isinstance(module, MultiHeadAttention):
        yield from _attention(module)
    else:
        # PyTorch has no other layer for a decoder without an encoder.
        alone = isinstance(module, DecoderLayer) and module.cross_attention is None
        kind = EncoderLayer if alone else type(module)
        yield from next((children for known, children in CHILDREN.items() if issubclass(kind, known)), {}).items()


def _attention(module: MultiHeadAttention) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    """One tensor for W_Q, W_K and W_V, unless keys or values have another width; always one for their biases."""
    shapes = {name: parameter.shape for name, parameter in module.named_parameters(remove_duplicate=False)}
    weights, biases = (tuple(f"{name}.{kind}" for name in _PACKED) for kind in ("weight", "bias"))
    if shapes.keys() >= set(weights):
        if len({shapes[name] for name in weights}) == 1:
            yield "in_proj_weight", weights
        else:
            yield from ((f"{name[0]}_proj_weight", name) for name in weights)
    if shapes.keys() >= set(biases):
        yield "in_proj_bias", biases
    yield "out_proj", "output"


def _model(model: Transformer, names: ModelNames) -> Iterator[tuple[str | None, str]]:
    """Both stacks, then the embeddings, the positions and the projection."""
    for stack in ("encoder", "decoder"):
        for part in CHILDREN[Encoder]:
            yield _dotted(names.transformer, f"{stack}.{part}"), f"{stack}.{part}"
    yield names.source_embedding, "encoder.embedding.table"
    yield names.target_embedding, "decoder.embedding.table"
    yield names.source_positions, "encoder.embedding.positions"
    yield names.target_positions, "decoder.embedding.positions"
    yield names.generator, "projection" if model.projection is not None else "decoder.embedding.table"  # tied


def _child(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name, None)
    return module if isinstance(module, nn.Module | Tensor) else None


def _dotted(path: str, name: str | None) -> str:
    return f"{path}.{name}" if path and name else path or name or ""
