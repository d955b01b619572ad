"""The models that the tests of models run over: one table, sequence-to-sequence and decoder-only."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad
from minigrad import Tensor, nn
from minigrad.func import functional_call

from tests.transformer.decoding_models import random_sources
from tests.transformer.tiny import LABELS, PAD, SOURCE, jitter, tiny_model
from transformer import GroupedQueryAttention, LanguageModel, RotaryPositions

TEXTS = np.array([[5, 3, 9, 7, 2], [8, 4, 2, 0, 0]])  # unequal lengths; 0 is padding
MEMORY = Tensor(np.random.default_rng(1).normal(size=(3, 7, 8)))
SOURCES, IDS = random_sources(1, (5, 2, 7)), np.random.default_rng(0).integers(3, 9, (3, 15))  # for `forward`


@dataclass
class Example:
    """A model in float64, in training mode.

    Attributes:
        sides: the texts of its loss, two in a padded batch: ids (2, T), or source and target.
        beside: what `forward` takes beside IDS, for the three texts, by name.
    """

    model: Any
    sides: Any
    beside: Any = dict

    def loss(self, rows=slice(None), reduction="mean"):
        """The label-smoothed loss of some of the texts, without the columns that are padding in all of them."""
        pad, memory = getattr(self.model, "config", self.model).pad_id, getattr(self.model, "cross_attention", False)
        trimmed = [ids[rows][:, :1 + np.flatnonzero((ids[rows] != pad).any(axis=0)).max()] for ids in self.sides]
        more = {"memory": self.beside()["memory"][:2][rows]} if memory else {}
        return self.model.loss(*trimmed, label_smoothing=0.1, reduction=reduction, **more)

    def along(self):
        """The loss as a function of steps along two random directions of each parameter, and these steps, all 0."""
        named, rng = dict(self.model.named_parameters()), np.random.default_rng(5)
        steps = [Tensor(np.zeros(2), device=p.device, requires_grad=True) for p in named.values()]
        ways = [Tensor(rng.standard_normal((2, p.numpy().size)), device=p.device) for p in named.values()]

        def loss(*steps):
            return functional_call(Loss(self), {f"model.{name}": p + (step @ way).reshape(p.shape) for (
                name, p), step, way in zip(named.items(), steps, ways, strict=True)})

        return loss, steps

    @property
    def forward(self):
        """Ids and what is beside → the logits of each token, with ``cache=…`` those of the new ones."""
        return getattr(self.model, "decode", self.model)


class Loss(nn.Module):
    """The loss of an example as what a module computes."""

    def __init__(self, example):
        super().__init__()
        self.model, self.example = example.model, example

    def forward(self):
        return self.example.loss()


def translating(change=lambda model: model, **options):
    def make(device="cpu", **more):
        model = change(tiny_model(**{"max_length": 40} | options | more)).to(device)

        def beside():
            with minigrad.no_grad(), nn.evaluating():
                return {"memory": model.encode(SOURCES), "memory_mask": model.memory_mask(SOURCES)}

        return Example(model, [np.where(ids == PAD, model.config.pad_id, ids) for ids in (SOURCE, LABELS)], beside)

    return make


def grouped(model):
    for layer in model.decoder.layers:
        layer.self_attention = GroupedQueryAttention(
            8, 2, 1, dropout=model.config.dropout, rotary=RotaryPositions(100.0, "interleaved"))
        layer.cross_attention = GroupedQueryAttention(8, 2, 1, head_dim=6, bias=("query",))
    jitter(model)
    return model.to(dtype=np.float64)


def language_model(**options):
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 1, "d_ff": 12, "max_length": 40, "pad_id": 0, "dropout": 0.0}
    with minigrad.random.fork(4):
        model = LanguageModel(11, **sizes | options)
    jitter(model)
    return model.to(dtype=np.float64)


def continuing(**options):
    return lambda device="cpu", **more: Example(language_model(**options | more).to(device), (TEXTS,), lambda: (
        {"memory": MEMORY.to(device)} if options.get("cross_attention") else {}))


THREE_WAY = {"share_embeddings": True, "tie_output": True}
MODELS = {
    "pre-norm, relu, nothing tied": translating(),
    "post-norm, gelu, three-way tied": translating(norm="post", activation="gelu", num_heads=4, **THREE_WAY),
    "without final norms, gelu_tanh, output tied, learned positions, two layers": translating(
        final_norm=False, activation="gelu_tanh", tie_output=True, positions="learned", num_decoder_layers=2,
        num_heads=1),
    "post-norm with final norms, output bias, no other bias, halves from 1": translating(
        norm="post", final_norm=True, activation="gelu", bias=False, output_bias=True, sinusoid_layout="halves",
        first_position=1, layer_norm_eps=1e-2),
    "silu, many heads, two layers in the encoder": translating(
        activation="silu", d_model=16, num_heads=8, num_encoder_layers=2),
    "padding among the tokens, and at their beginning": translating(pad_id=8, num_decoder_layers=2),
    "grouped, rotary": translating(grouped),
    "as GPT-2": continuing(activation="gelu_tanh", num_layers=2),
    "post-norm, sinusoidal": continuing(norm="post", positions="sinusoidal"),
    "a projection of its own, no biases": continuing(tie_output=False, bias=False),
    "as Llama": continuing(positions="rotary", num_heads=4, num_kv_heads=2, norm="pre"),
    "with a memory": continuing(cross_attention=True),
}
