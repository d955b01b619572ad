"""``explain``: a trained model reads a sentence and its translation, and a trace records its attentions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from minigrad import Tensor, ops, random
from minigrad.device import on_device_of, xp

from transformer.data.batches import Example, collate
from transformer.explore.data import Tokens
from transformer.explore.explanation import Explanation
from transformer.explore.live import LIMIT, live_model, why_not_live
from transformer.explore.trace import trace
from transformer.finite import overflow, unwarned
from transformer.model import Transformer, shift_right
from transformer.training.threads import suitable_products
from transformer.translator import Translator


def explain(translator: Translator, source: str | Sequence[str], target: str | Sequence[str | None] | None = None,
            limit: float = LIMIT) -> Explanation:
    """Explain the gradients of a translation.

    The model is copied in float64, in evaluation mode. The loss is the cross-entropy per target token, without
    smoothing. `Explanation.checks` computes it by a formula that keeps its digits near 0.

    Args:
        translator: a model with its tokenizers; it is not changed.
        source: a text, or several: a batch.
        target: the translation, or one for each source; None, also in the place of one: the model's own translation.
        limit: the MB that its page may have.

    Raises:
        ValueError: no text, an empty one, one with more tokens than the model has positions, or not one target for each
            source.
        NotFinite: the model gives no finite translation or loss.
    """
    sources = [source] if isinstance(source, str) else list(source)
    given = [None] * len(sources) if target is None else target
    targets = [given] if isinstance(given, str) else given
    with suitable_products(translator.model.config), random.fork(), unwarned():
        examples = examples_of(translator, sources, targets)
        batch = collate(examples, range(len(examples)))
        model, labels = double(translator.model), batch.target[:, 1:]
        with trace(model) as traced:
            loss = model.loss(batch.source, labels)
            loss.backward()
        if not math.isfinite(loss.item()):
            raise overflow(model, "loss")
        problem = why_not_live(translator, model, batch.source, labels, limit)

    def again() -> Tensor:
        with suitable_products(model.config), unwarned():
            return cross_entropy_near_zero(model, batch.source, labels)

    read = batch.target[:, :-1]
    tokens = Tokens(*([tokenizer.tokens(row) for row in ids] for tokenizer, ids in (
        (translator.source_tokenizer, batch.source), (translator.target_tokenizer, read),
        (translator.target_tokenizer, labels))))
    written = [translator.target_tokenizer.decode(ids) for _, ids in examples]
    title = "; ".join(f"{left} → {right}" for left, right in zip(sources, written, strict=True))
    live = problem or live_model(translator, model, (sources, written), examples, written=not any(targets))
    return Explanation(traced, title, loss.item(), again, tokens, live, limit)


def double(model: Transformer) -> Transformer:
    """A copy in float64, in evaluation mode and without gradients, on the same device; weights keep their values."""
    copied = deepcopy(model).eval()
    copied.zero_grad()  # what training left there would be added to the gradient of the sentence
    return copied.to(dtype=np.float64)


def cross_entropy_near_zero(model: Transformer, source: Any, labels: Any) -> Tensor:
    """``model.loss(source, labels)`` by a formula that is accurate near 0.

    The loss of a token with logits z and label y is ``log Σⱼ exp(z_j − z_y)``. Where the model is sure, the sum is
    1 + ε with a small ε, and the addition rounds away most digits of ε. ``log1p`` of the sum without j = y keeps them,
    which finite differences of a well trained model need.
    """
    labels = model.target_ids(labels)
    with on_device_of(labels):
        is_label = xp(labels).arange(model.config.target_vocab_size) == labels[..., None]  # (B, T, vocabulary)
        real = labels != model.config.pad_id
    logits = model(source, shift_right(labels, model.config.bos_id))
    of_label = ops.where(is_label, logits, 0.0).sum(axis=-1, keepdims=True)
    others = ops.where(is_label, 0.0, ops.exp(logits - of_label)).sum(axis=-1)
    return ops.where(real, ops.log1p(others), 0.0).sum() / int(real.sum())


def examples_of(translator: Translator, sources: Sequence[str], targets: Sequence[str | None]) -> list[Example]:
    """Token ids of each pair, as `encode_pairs` gives them; None stands for the model's own translation.

    Raises:
        ValueError: an empty text, or not one target for each source.
    """
    if not sources or len(targets) != len(sources):
        raise ValueError(f"a target for each source expected, got {len(sources)} and {len(targets)}")
    config, examples = translator.model.config, []
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), start=1):
        if not source.strip():
            raise ValueError(f"source {number} is empty; give a text for the model to read")
        if target is not None and not target.strip():
            raise ValueError("the target is empty; leave it out to take what the model writes itself")
        # A translation that was cut off at the last position leaves no room for its end.
        written = (translator.translate([source])[0][0].ids[:config.max_length - 1] if target is None else
                   translator.target_tokenizer.encode(target))
        examples.append(([*translator.source_tokenizer.encode(source), config.eos_id], written))
    return examples
