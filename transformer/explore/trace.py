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
from collections.abc import Callable, Iterator
from typing import Any

from minigrad import nn, tapping
from minigrad.engine.watch import watch

from transformer.explore.calls import Calls
from transformer.explore.explanation import Explanation
from transformer.explore.recorder import Recorder


class Trace(Calls):
    """The attentions that ran inside a `trace` block, by their dotted names, in the order in which they first ran.

    Attributes:
        model: the module that was traced.
    """

    def explanation(self, loss: Callable[[], Any] | None = None) -> Explanation:
        """The trace as text (`Explanation.text`).

        Args:
            loss: computes the loss of the block again, from the start; the text then compares every gradient with
                finite differences of it. Only float64 has enough digits for the comparison.
        """
        value = None if loss is None else self.replay(loss)
        return Explanation(self, f"Attention of a {type(self.model).__name__}", value, loss)


@contextlib.contextmanager
def trace(model: nn.Module) -> Iterator[Trace]:
    """Record what every attention of `model` computes inside the block: ``with trace(model) as t: …``.

    An attention is a call of `scaled_dot_product_attention` or `multi_head_attention` (`minigrad.functional`) by a
    module of the model, and has the dotted name of that module, the innermost one that is running: a
    `MultiHeadAttention`, a subclass, or any other. Of a module that does something else than a `MultiHeadAttention`
    before and after the call, the tensors and parameters there are not known (`AttentionTrace`).

    The backward may run inside the block or after it; a gradient checkpoint inside keeps everything. Gradients are
    those of ``loss.backward()``; `minigrad.grad` fills none. Those of parameters add up
    in ``.grad``: after training, call ``model.zero_grad()`` first. Decoding inside the block is a call for each step.
    The block applies to the current thread or task alone. The trace keeps the graph
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
