"""A KV cache outside of the modules, for any model whose attentions project keys and values with `nn.Linear`.

`KeyValueCache` calls the model on the new tokens alone. A function stands in the place of its linear maps: where
one of them projects keys or values, it returns those of all tokens so far. No module knows of it and nothing in the
model changes, so that other threads may use or train the model meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from minigrad import Tensor, nn, no_grad
from minigrad.device import device_of, is_host, on_device_of
from minigrad.device.local import Setting
from minigrad.engine.primitive import Primitive, composing
from minigrad.functional.linear import linear
from minigrad.nn.state import same_values
from minigrad.tensor import as_tensor

from transformer.decode.kv_cache import Rows, select_rows, with_room

ROLES = ("query", "key", "value")

Place = tuple[int, str]  # the number of a call of an attention within one call of the model, and a role


class KeyValueCache:
    """Calls a model on new tokens, with the keys and values of the tokens before them.

    ```python
    cache = KeyValueCache(model)
    logits = cache(ids[:, :5])  # those of model(ids), for the first five tokens
    logits = cache(ids[:, 5:])  # for the others, which attend to the first five
    ```

    The model meets these conditions; `LanguageModel` does.

    - It takes ``past``, the number of tokens before its ids: it counts positions from there, and its mask lets T new
      tokens see ``past`` earlier ones, ``causal_mask(T, past + T)``.
    - Each attention has children `query`, `key` and `value`, an `nn.Linear` each, and calls each once. Its queries are
      the last T of the tokens that its keys and values stand for. `MultiHeadAttention` and `GroupedQueryAttention` are
      such attentions.

    Where an attention projects other numbers for its keys than for its queries, as attention to a memory does, the keys
    and values of the first call serve in all later ones, which have the same memory.

    Args:
        model: as above. It runs in the mode that it has; decode in evaluation mode (`nn.evaluating`).

    Attributes:
        length: the number of tokens that it holds of each sequence.

    One thread uses a cache at a time. Calls record no graph: the results have no gradient.

    Raises:
        ValueError: the model does not take `past`, or has no such attentions.
    """

    def __init__(self, model: nn.Module) -> None:
        roles = projections(model)
        if not roles:
            raise ValueError(f"KeyValueCache: the forward of {type(model).__name__} must take `past`, the number of "
                             "tokens before its ids, and attentions must have `nn.Linear` children query, key and "
                             "value, each with a weight of its own")
        self.model, self.roles = model, roles
        self.clear()

    def clear(self) -> None:
        """Forget all tokens."""
        self.length = 0
        self.kept: dict[Place, Any] = {}  # keys or values, (B, 1, room, features)
        self.memories: dict[Place, Any] = {}  # what those are made of that stay as in the first call, (B, S, D)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """``model(*args, **kwargs, past=length)``: with ids (B, T), the logits of the new tokens, (B, T, V).

        A call that raises leaves the cache as it was.

        Raises:
            ValueError: another batch or another memory than before; an attention that does not meet the conditions
                above. The numbers of a memory that is another tensor on a GPU are not checked.
        """
        if self.length == 0:
            self.clear()  # of what a first call left that raised
        call = _Call(self)
        with no_grad(), Setting(composing, lambda before: partial(call.operation, before)):
            out = self.model(*args, **kwargs, past=self.length)
        call.end()
        return out

    def select(self, rows: Any) -> None:
        """Make these rows, in this order, the batch; `rows`: indices on the host, possibly repeated.

        Raises:
            TypeError: rows that are no indices, such as a boolean mask.
            IndexError: there is no such row.
        """
        indices = np.asarray(rows)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise TypeError(f"KeyValueCache: rows must be a list of indices, got {rows!r}; those of a boolean mask are "
                            "numpy.flatnonzero(mask)")
        sent = Rows(indices.astype(np.int64))
        for place, buffer in self.kept.items():
            used = buffer.shape[2] if place in self.memories else self.length
            self.kept[place] = select_rows(buffer, sent, used)
        for place, memory in self.memories.items():
            with on_device_of(memory):
                self.memories[place] = memory[sent.on(device_of(memory))[0]]


class _Call:
    """One call of the model.

    Attributes:
        inputs: what each projection was given.
        new: the number of tokens that each place of the cache gets.
    """

    def __init__(self, cache: KeyValueCache) -> None:
        self.cache = cache
        self.inputs: dict[Place, Tensor] = {}
        self.new: dict[Place, int] = {}

    def operation(self, compose: Callable[..., Any] | None, op: Primitive, args: tuple[Any, ...], values: Any) -> Any:
        """The output of `op`; for a projection of keys or values, that for all tokens so far."""
        role = self.cache.roles.get(id(args[1])) if op is linear else None
        if role is None:
            return self.output(compose, op, args, values)
        place = len(self.inputs) // len(ROLES), role
        if place in self.inputs:
            raise ValueError(f"KeyValueCache: an attention projects its {role} twice before its other projections")
        self.inputs[place] = args[0]
        if role == "query":
            return self.output(compose, op, args, values)
        if place in self.cache.memories:
            return as_tensor(self.of_memory(place, args[0]._data))
        return as_tensor(self.joined(place, self.output(compose, op, args, values).data))

    def output(self, compose: Callable[..., Any] | None, op: Primitive, args: tuple[Any, ...], values: Any) -> Any:
        """That of `op` itself, or of its composition where compositions run."""
        if compose is not None:
            return compose(op, args, values)
        with Setting(composing, lambda before: None):
            return op(*args)

    def joined(self, place: Place, new: Any) -> Any:
        """Keys or values (B, T, n) of new tokens → those of all tokens so far, (B, length + T, n), a view."""
        if new.ndim != 3:
            raise ValueError(f"KeyValueCache: keys and values of shape (batch, length, features) expected, got "
                             f"{tuple(new.shape)}")
        start, end = self.cache.length, self.cache.length + new.shape[1]
        before = self.earlier(place, len(new)) if start else None
        buffer = self.cache.kept[place] = with_room(before, new[:, None], start, end)
        with on_device_of(new):
            buffer[:, 0, start:end] = new
        self.new[place] = new.shape[1]
        return buffer[:, 0, :end]

    def of_memory(self, place: Place, memory: Any) -> Any:
        """The keys or values of a memory, (B, S, n), having checked that it is that of the first call."""
        earlier, before = self.earlier(place, len(memory)), self.cache.memories[place]
        if memory is not before and (memory.shape != before.shape or
                                     (is_host(memory) and not same_values(memory, before))):
            raise ValueError("KeyValueCache: an attention projects another tensor for its keys or values than for its "
                             "queries, and another one than in the first call; `clear` begins anew with another memory")
        return earlier[:, 0]

    def earlier(self, place: Place, batch: int) -> Any:
        """What the cache holds at `place`, (B, 1, room, n)."""
        held = self.cache.kept.get(place)
        if held is None:
            raise ValueError("KeyValueCache: the model calls more attentions than in the first call")
        if len(held) != batch:
            raise ValueError(f"KeyValueCache: the cache holds {len(held)} sequences, and the call has {batch}; "
                             "`select` changes the batch, and `clear` begins anew")
        return held

    def end(self) -> None:
        """Count the new tokens, after a call that has not raised."""
        cache, memories = self.cache, self.cache.memories
        if cache.length == 0:
            memories = {place: self.inputs[place]._data for place in self.new if self.reads_memory(place[0])}
        lengths = {self.new.get(place, 0) for place in cache.kept.keys() - memories.keys()}
        if len(lengths) != 1:
            raise ValueError("KeyValueCache: the self-attentions of the model do not read the same tokens, or there "
                             "are none")
        if cache.length == 0:
            cache.memories = memories
            cache.kept |= {place: cache.kept[place][:, :, :self.new[place]] for place in memories}
        cache.length += lengths.pop()

    def reads_memory(self, number: int) -> bool:
        """Whether the keys of a call of an attention are not made of what its queries are made of."""
        keys, queries = self.inputs[number, "key"], self.inputs.get((number, "query"))
        # A visitor of `tap` may have given the attention a copy for each.
        return queries is None or (keys is not queries and not same_values(keys._data, queries._data))


def projections(model: nn.Module) -> dict[int, str]:
    """The role of each projection of the attentions of `model`, by the id of its weight; none if no cache serves it."""
    roles: dict[int, str] = {}
    for module in model.modules() if "past" in signature(model.forward).parameters else ():
        parts = {role: vars(module).get(role) for role in ROLES}
        if not all(isinstance(part, nn.Module) for part in parts.values()):
            continue
        for role, part in parts.items():
            if type(part) is not nn.Linear or roles.setdefault(id(part.weight), role) != role:
                return {}
    return roles
