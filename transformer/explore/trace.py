"""The tensors inside attention: every tensor of every head, and its gradient.

    with trace(model) as t:
        model.loss(source, labels).backward()
    attention = t["decoder.layers.0.cross_attention"]
    attention.weights, attention.gradient("weights")  # A and dA, each (B, H, T, S)

The model inside the block runs on compositions (`minigrad.tapping`); outside it, nothing is kept and nothing is slower.
No module holds a result. transformer/explore/traced.py describes the recorded tensors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

from minigrad import nn, tapping
from minigrad.engine.watch import watch

from transformer.explore.calls import Calls
from transformer.explore.checks import replay
from transformer.explore.explanation import Explanation, tokens_of
from transformer.explore.notebook import frame
from transformer.explore.recorder import Recorder


class Trace(Calls):
    """The attentions that ran inside a `trace` block, by their dotted names, in the order in which they first ran.

    Attributes:
        model: the module that was traced.
    """

    def explanation(self, source_tokens: Any = None, target_tokens: Any = None,
                    loss: Callable[[], Any] | None = None) -> Explanation:
        """The trace with labels, for a page or a text. Arguments and errors are those of `to_html`."""
        tokens = tokens_of(self, source_tokens, target_tokens)
        value = None if loss is None else replay(self, loss)
        return Explanation(self, tokens, f"Attention of a {type(self.model).__name__}", value, loss)

    def to_html(self, path: str | PathLike[str], source_tokens: Any = None, target_tokens: Any = None,
                loss: Callable[[], Any] | None = None, attentions: Sequence[str] = ()) -> list[str]:
        """Write the explorer of the trace to `path`: one page that opens in a browser.

        Args:
            path: the file.
            source_tokens, target_tokens: the labels of rows and columns: the tokens that the encoder and the decoder
                read, a list for each batch item, or one list if there is only one item. None: positions.
            loss: computes the loss of the block again, from the start; the page then compares every gradient with
                finite differences of it. Only float64 has enough digits for the comparison.
            attentions: names, or beginnings of names, of the attentions to show; by default as many as fit.

        Returns:
            The attentions that are not in the page: those that were not chosen, or do not fit into about 2 MB.

        Raises:
            ValueError: there was no backward yet, an unknown attention, or labels that do not fit.
            OSError: the file cannot be written.
        """
        return self.explanation(source_tokens, target_tokens, loss).to_html(path, attentions)

    def _repr_html_(self) -> str | None:
        """The explorer, for a notebook; None before the backward, so that the notebook shows the repr."""
        backward_done = any(attention.reached for attention in (self[name] for name in self))
        return frame(self.explanation().page().html) if backward_done else None


@contextlib.contextmanager
def trace(model: nn.Module) -> Iterator[Trace]:
    """Record what every attention of `model` computes inside the block: ``with trace(model) as t: …``.

    An attention is a call of `scaled_dot_product_attention` or `multi_head_attention` (`minigrad.functional`) by a
    module of the model, and has the dotted name of that module, the innermost one that is running: a
    `MultiHeadAttention`, a subclass, or any other. Of a module that does something else than a `MultiHeadAttention`
    before and after the call, the tensors and parameters there are not known (`AttentionTrace`).

    The backward may run inside the block or after it; with gradient checkpointing, it must run inside. Gradients are
    those of ``loss.backward()``; `minigrad.grad` fills none. Those of parameters add up
    in ``.grad``: after training, call ``model.zero_grad()`` first. Decoding inside the block runs the whole prefix at
    each step, and each step is a call. The block applies to the current thread or task alone. The trace keeps the graph
    of the forward alive until it is dropped. Without any attention in the block the trace is empty: its length is 0,
    and what is asked of it is an error that says so.

    Args:
        model: any module with attentions in it: a Transformer, a stack, one attention.

    Raises:
        TypeError: not a module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"trace: a module expected, got {type(model).__name__}")
    traced = Trace(model)
    recorder = Recorder(model, traced._calls)
    with watch(recorder), tapping(recorder.tensor, recorder.constant):
        yield traced
