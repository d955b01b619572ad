"""A small model written out step by step in minigrad, so that every tensor inside it has a value and a gradient.

`steps_of` runs it, and `test_the_steps_are_the_models` holds it to `transformer.model`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad import Tensor, ops
from minigrad import functional as F

from tests.transformer.tiny import BOS, LABELS, PAD, SOURCE, tiny_model
from transformer.explore.data import encode_array
from transformer.model.layers import ACTIVATIONS

# What a page can meet, in three models: each option has another value in one of them.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "pre": {"activation": "relu", "num_encoder_layers": 2, "num_decoder_layers": 2},
    "post": {"norm": "post", "activation": "gelu", "tie_output": True, "share_embeddings": True, "layer_norm_eps": 1e-3,
             "sinusoid_layout": "halves", "first_position": 1, "num_encoder_layers": 2},
    "pre, learned": {"activation": "gelu_tanh", "positions": "learned", "bias": False, "norm_bias": False,
                     "output_bias": True, "num_decoder_layers": 2},
    "post, normed": {"norm": "post", "final_norm": True, "activation": "silu", "num_encoder_layers": 0,
                     "tie_output": True, "norm_bias": False},
    "pre, no decoder layers": {"final_norm": False, "num_decoder_layers": 0, "share_embeddings": True},
}

Record = dict[str, Any]  # by symbol
Place = dict[str, Any]  # {"kind", "heads": a record for each head, "shared": a record}


def sentences() -> list[tuple[list[int], list[int]]]:
    """The batch, item by item and without padding."""
    return [([int(i) for i in source if i != PAD], [int(i) for i in target if i != PAD])
            for source, target in zip(SOURCE, LABELS, strict=True)]


def model_of(name: str) -> Any:
    """A model whose norms, biases and scores are far from their first values."""
    return tiny_model(**CONFIGURATIONS[name])


def as_data(model: Any) -> dict[str, Any]:
    """The model as a page has it."""
    parameters = {name: encode_array(parameter.numpy(), "float64") for name, parameter in model.named_parameters()}
    return {"config": model.config.to_json(), "parameters": parameters}


class Steps:
    """One sentence through the model, its tensors kept by place.

    Args:
        scaling, masking: False: no attention has it.
        edit: one entry that gets another value, by adding a constant; of an attention's dY: to what arrives at Y.
    """

    def __init__(self, model: Any, source: Sequence[int], target: Sequence[int], count: int, scaling: bool = True,
                 masking: bool = True, edit: dict[str, Any] | None = None) -> None:
        self.model, self.config = model, model.config
        self.scaling, self.masking, self.edit = scaling, masking, edit
        self.places: dict[str, Place] = {}
        memory = self.stack("encoder", source, None)
        hidden = self.stack("decoder", [BOS, *target[:-1]], memory)
        self.loss = self.output(hidden, target, count)
        self.measured = self.loss  # what is differentiated
        if edit is not None and edit["symbol"] == "dY":
            y = self.places[edit["path"]]["shared"]["Y"]
            self.measured = self.loss + edit["offset"] * y[edit["row"], edit["col"]]

    def stack(self, side: str, ids: Sequence[int], memory: Tensor | None) -> Tensor:
        stack = getattr(self.model, side)
        x = self.embedding(f"{side}.embedding", stack.embedding, ids)
        for n, layer in enumerate(stack.layers):
            path = f"{side}.layers.{n}"
            x = self.residual(path, layer, "self_attention", x,
                              lambda y, at, part: self.attention(at, part, y, y, causal=side == "decoder"))
            if memory is not None:
                x = self.residual(path, layer, "cross_attention", x,
                                  lambda y, at, part: self.attention(at, part, y, memory))
            x = self.residual(path, layer, "feed_forward", x, lambda y, at, part: self.feed_forward(at, part, y))
        return x if stack.norm is None else self.norm(f"{side}.norm", stack.norm, x)

    def residual(self, path: str, layer: Any, name: str, x: Tensor, sublayer: Any) -> Tensor:
        around, part, at = getattr(layer, f"{name}_residual"), getattr(layer, name), f"{path}.{name}"

        def add(u: Tensor) -> Tensor:
            keep = self.place(f"{at}_residual", "residual")
            return keep("Y", keep("X", x) + keep("U", u))

        if self.config.norm == "pre":
            return add(sublayer(self.norm(f"{at}_residual.norm", around.norm, x), at, part))
        return self.norm(f"{at}_residual.norm", around.norm, add(sublayer(x, at, part)))

    def embedding(self, path: str, module: Any, ids: Sequence[int]) -> Tensor:
        keep = self.place(path, "embedding")
        rows = keep("E", keep("W", module.table.weight)[np.array(ids)])
        positions = module.positions.table[:len(ids)]
        learned = self.config.positions == "learned"
        return keep("Y", rows * math.sqrt(self.config.d_model) + (keep("P", positions) if learned else
                                                                  self.constant(path, "P", positions)))

    def norm(self, path: str, module: Any, x: Tensor) -> Tensor:
        keep = self.place(path, "norm")
        x = keep("X", x)
        mu = x.mean(axis=-1, keepdims=True)
        centred = x - mu
        rs = 1 / ((centred * centred).mean(axis=-1, keepdims=True) + module.eps).sqrt()
        self.constant(path, "mu", mu)
        self.constant(path, "rs", rs)
        y = keep("Xh", centred * rs) * keep("w", module.weight.reshape(1, -1))
        return keep("Y", y if module.bias is None else y + keep("b", module.bias.reshape(1, -1)))

    def feed_forward(self, path: str, module: Any, x: Tensor) -> Tensor:
        keep = self.place(path, "feed_forward")
        hidden = keep("H", self.affine(keep, keep("X", x), module.inner, "W1", "b1"))
        active = keep("F", ACTIVATIONS[self.config.activation](hidden))
        return keep("Y", self.affine(keep, active, module.outer, "W2", "b2"))

    def attention(self, path: str, module: Any, x: Tensor, memory: Tensor, causal: bool = False) -> Tensor:
        keep = self.place(path, "attention", module.num_heads)
        is_self, width = x is memory, self.config.d_model // module.num_heads
        x = keep("X", x)
        memory = x if is_self else keep("M", memory)
        if is_self:
            self.constant(path, "M", memory)
        reads = {letter: keep(f"X{letter.lower()}", x if letter == "Q" else memory) for letter in "QKV"}
        outputs = []
        for index in range(module.num_heads):
            of_head = self.place(path, "attention", head=index)
            made = {letter: of_head(letter, self.affine(of_head, of_head(f"X{letter.lower()}", reads[letter]), linear,
                                                        f"W{letter}", f"b{letter}", index, width))
                    for letter, linear in zip("QKV", (module.query, module.key, module.value), strict=True)}
            divisor = math.sqrt(width) if self.scaling else 1
            scores = of_head("S", of_head("R", made["Q"] @ made["K"].T) / divisor)
            allowed = np.tri(*scores.shape, dtype=bool) if causal and self.masking else np.ones(scores.shape, bool)
            weights = of_head("A", F.softmax(of_head("Sm", ops.where(allowed, scores, -np.inf))))
            outputs.append(of_head("O", weights @ made["V"]))
        joined = keep("C", ops.concatenate(outputs, axis=1))
        return keep("Y", self.affine(keep, joined, module.output, "WO", "bO"))

    def output(self, hidden: Tensor, target: Sequence[int], count: int) -> Tensor:
        keep = self.place("output", "output")
        hidden = keep("X", hidden)
        if self.model.projection is None:
            logits = hidden @ keep("W", self.model.decoder.embedding.table.weight.T)
        else:
            logits = self.affine(keep, hidden, self.model.projection, "W", "b")
        logits = keep("Z", logits)
        of_target = F.cross_entropy(logits, np.array(target), reduction="none")
        self.constant("output", "P", F.softmax(logits))
        self.constant("output", "L", of_target.reshape(-1, 1))
        return keep("loss", (of_target.sum() / count).reshape(1, 1)).sum()

    @staticmethod
    def affine(keep: Any, x: Tensor, linear: Any, weight: str, bias: str, head: int = 0,
               width: int | None = None) -> Tensor:
        """x W + b, with the columns of one head."""
        mine = slice(None) if width is None else slice(head * width, (head + 1) * width)
        y = x @ keep(weight, linear.weight.T[:, mine])
        return y if linear.bias is None else y + keep(bias, linear.bias.reshape(1, -1)[:, mine])

    def place(self, path: str, kind: str, heads: int = 0, head: int | None = None) -> Any:
        """A function that keeps a tensor under its symbol, in the place's shared record or in that of a head."""
        if head is None:
            self.places[path] = {"kind": kind, "heads": [{} for _ in range(max(heads, 1))], "shared": {}}
        record = self.places[path]["shared"] if head is None else self.places[path]["heads"][head]

        def keep(symbol: str, tensor: Tensor) -> Tensor:
            edit = self.edit or {}
            edited = edit.get("path") == path and edit["symbol"] == symbol and edit["head"] == head
            offset = np.zeros(tensor.shape)
            if edited:
                offset[edit["row"], edit["col"]] = edit["value"] - tensor.numpy()[edit["row"], edit["col"]]
            record[symbol] = tensor + Tensor(offset)  # a node, whose gradient is what comes back on this way
            record[symbol].retain_grad()
            return record[symbol]

        return keep

    def constant(self, path: str, symbol: str, tensor: Tensor) -> Tensor:
        self.places[path]["shared"][symbol] = tensor.numpy()
        return tensor

    def arrays(self) -> dict[str, Place]:
        """By place, values and, after the backward, gradients, as arrays; and what follows from them."""
        found = {path: {"kind": kept["kind"], "heads": [_arrays(head) for head in kept["heads"]],
                        "shared": _arrays(kept["shared"])} for path, kept in self.places.items()}
        for kept in found.values():
            shared = kept["shared"]
            if kept["kind"] == "attention":
                for head in kept["heads"]:
                    head["D"] = (head["A"] * head["dA"]).sum(axis=1, keepdims=True)
            if kept["kind"] == "norm":
                shared["m1"] = shared["dXh"].mean(axis=1, keepdims=True)
                shared["m2"] = (shared["dXh"] * shared["Xh"]).mean(axis=1, keepdims=True)
        return found


def _arrays(record: Record) -> Record:
    found = {}
    for symbol, value in record.items():
        if isinstance(value, np.ndarray):
            found[symbol] = value
            continue
        found[symbol] = value.numpy()
        # What does not reach the loss, as an encoder that no decoder reads, has no gradient in the engine.
        found[f"d{symbol}"] = np.zeros(value.shape) if value.grad is None else value.grad.numpy()
    return found


def steps_of(model: Any, item: int = 0, edit: dict[str, Any] | None = None,
             **options: Any) -> tuple[float, list[dict[str, Place]], dict[str, np.ndarray]]:
    """The loss of the batch, the arrays of each sentence by place, and the gradient of every parameter.

    An edit is one of `item`; the other options are those of `Steps`.
    """
    batch = sentences()
    count = sum(len(target) for _, target in batch)
    runs = [Steps(model, source, target, count, edit=edit if n == item else None, **options)
            for n, (source, target) in enumerate(batch)]
    model.zero_grad()
    for run in runs:
        run.measured.backward()
    gradients = {name: np.zeros(parameter.shape) if parameter.grad is None else np.array(parameter.grad.numpy())
                 for name, parameter in model.named_parameters()}
    return sum(run.loss.item() for run in runs), [run.arrays() for run in runs], gradients
