"""An explanation: a trace with its tokens, its checks and its history; shown as a page, as text, in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from transformer.explore.calls import NONE, Calls
from transformer.explore.checks import Check, Loss, measure
from transformer.explore.data import (
    Json,
    Snapshot,
    Tokens,
    attention_data,
    facts_of_attention,
    layer_of,
    page_data,
    sides,
)
from transformer.explore.identities import identities
from transformer.explore.live import BYTES_PER_NUMBER, LIVE_LIMIT, LiveModel
from transformer.explore.notebook import frame
from transformer.explore.page import embedded_json, page_html
from transformer.explore.steps import step_named
from transformer.explore.stories import Story, stories_of_page
from transformer.explore.text import number, one_step, overview, printable

# The bytes of a page without a live model for a sentence of 12 tokens, and for each further token; attentions chosen by
# name may take more.
# All attentions of the model that learns dates take 1.2 MB for a sentence of 12 tokens, 2.2 MB for one of 60.
LIMIT, LIMIT_TOKENS, LIMIT_PER_TOKEN = 2_000_000, 12, 20_000
CHECKS = 6_000  # bytes that the checks of an attention take, at most
TRACED = "it shows a trace, which holds the attentions and not the model around them"


@dataclass(repr=False)
class Explanation:
    """A backward pass through every attention of a model, for display.

    Attributes:
        trace: the trace, after the backward.
        tokens: what rows and columns are named by.
        title: the title of the page.
        loss: the value of the loss, or None if it is not known.
        loss_name: a description of the loss.
        again: computes the loss again, to compare gradients with finite differences; None: no comparison.
        history: the same sentence at checkpoints of the training, oldest first.
        live: the model, for pages that compute all of it; or why they cannot, in words.
    """

    trace: Calls
    tokens: Tokens
    title: str
    loss: float | None = None
    again: Loss | None = None
    history: list[Snapshot] = field(default_factory=list)
    loss_name: str = "the loss of the block that was traced"
    live: LiveModel | str = TRACED
    _checks: dict[str, dict[str, list[Check]]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The attentions that a gradient has reached, in the order in which they ran.

        Raises:
            ValueError: a gradient has reached none.
        """
        reached = [name for name in self.trace.names if self.trace[name].reached]
        if not reached:
            for name in self.trace.names:
                traced = self.trace[name]
                traced.gradient("output" if "output" in traced else "context")  # raises, and says what to do
            raise ValueError(f"no attention ran inside the trace block: there is nothing to explain; there are {NONE}")
        return reached

    def preferred(self) -> list[str]:
        """The attentions in the order in which a page with little room takes them.

        The order follows the gradient from the loss downwards: the decoder before the encoder, the last layer first,
        and within a layer the cross-attention, where the two sentences meet, before the self-attention.
        """
        kinds = {"cross": 0, "decoder self": 1}
        return sorted(self.names, key=lambda name: (name.startswith("encoder"), -layer_of(name),
                                                    kinds.get(self.trace[name].kind, 2)))

    def matching(self, wanted: Iterable[str]) -> list[str]:
        """The attentions whose dotted names are wanted, in full or by their beginning.

        Raises:
            ValueError: a wanted name matches none; the message lists the known ones.
        """
        names, found = self.names, set[str]()
        for beginning in wanted:
            matches = {name for name in names if f"{name}.".startswith(f"{beginning}.")}
            if not matches:
                raise ValueError(f"there is no attention {beginning!r}; there are {', '.join(names)}")
            found |= matches
        return [name for name in names if name in found]

    def labels(self, name: str, item: int = 0) -> tuple[list[str], list[str]]:
        """The names of the queries and of the keys of an attention, as in transformer/explore/labels.py."""
        attention = self.trace[name]
        (of_queries, of_keys), (queries, keys) = sides(attention), attention.scores.shape[-2:]
        return self.tokens.queries(of_queries, item)[:queries], self.tokens.keys(of_keys, item)[:keys]

    def checks(self, name: str) -> dict[str, list[Check]]:
        """Finite differences of each tensor of an attention (`measure`); empty if the loss cannot be computed again.

        They are measured at the first call.
        """
        if name not in self._checks:
            self._checks[name] = {} if self.again is None else measure(self.trace, name, self.again)
        return self._checks[name]

    # ------------------------------------------------------------------ page and text

    def page(self, attentions: Sequence[str] = (), limit: int | None = None, stories: Iterable[Story] = ()) -> Page:
        """The explanation as an HTML page.

        The page has a live model if there is one and it fits into `limit`. Such a page has every attention.

        Args:
            attentions: names, or beginnings of names, of attentions. A page with a live model opens with the first;
                any other page has these alone. By default such a page has as many as fit into `limit`, in the order of
                `preferred`, and at least one.
            limit: bytes; None: 3 MB with a live model; without one 2 MB for a sentence of 12 tokens, and 20 kB more for
                each further token. Snapshots of the history are left out, evenly, where they do not fit.
            stories: files of stories for the page to tell, or the same as dicts (docs/stories.md); it opens with the
                first, and has its own besides.

        Raises:
            ValueError: an unknown attention, no gradient yet, or a story that cannot be told.
            OSError: the file of a story cannot be read.
        """
        told = stories_of_page(stories)
        wanted = self.matching(attentions)
        live_limit = LIVE_LIMIT if limit is None else limit
        model, not_live = self._live_within(live_limit, told)
        if model is not None:
            opens = self.matching(attentions[:1])[0] if attentions else None
            return self._live_page(model, live_limit, opens=opens, stories=told)
        if limit is None:
            longest = max((len(row) for rows in (self.tokens.source, self.tokens.target) for row in rows), default=0)
            limit = LIMIT + LIMIT_PER_TOKEN * max(0, longest - LIMIT_TOKENS)
        names = wanted or self._fitting(limit, told)
        left_out = [name for name in self.names if name not in names]

        def html(snapshots: Sequence[Snapshot]) -> str:
            data = [attention_data(self.trace[name], self.checks(name), snapshots) for name in names]
            return self._html(data, left_out=left_out, not_live=not_live, stories=told)

        return Page(self._with_history(html, names, limit), names, left_out, not_live)

    def to_html(self, path: str | PathLike[str], attentions: Sequence[str] = (),
                stories: Iterable[Story] = ()) -> list[str]:
        """Write the page to `path`; returns the attentions that are not in it. Errors as of `page`, and OSError."""
        page = self.page(attentions, stories=stories)
        Path(path).write_text(page.html, encoding="utf-8")
        return page.left_out

    def text(self, attention: str | None = None, item: int = 0, head: int = 0, step: str | None = None,
             colour: bool = False, width: int = 120) -> str:
        """One head of one attention for a terminal: all its steps, or one of them as a matrix.

        Args:
            attention: its name; the first of `preferred` if None.
            item, head: the batch item and the head, counted from 0.
            step: a symbol such as "dS" (transformer/explore/steps.py), or a label such as "dW_Q"; None: all.
            colour: whether to write ANSI colours.
            width: of the terminal, in columns.

        Raises:
            ValueError: an unknown attention or step, or several attentions.
            IndexError: there is no such item or head.
        """
        names = self.preferred()[:1] if attention is None else self.matching([attention])
        if len(names) > 1:
            raise ValueError(f"{attention!r} names several attentions: {', '.join(names)}; choose one")
        [name] = names
        traced = self.trace[name]
        facts = identities(traced.head(item, head))
        symbol = None if step is None else step_named(traced, step).symbol
        title = printable(" ".join(self.title.split()))
        lines = [title if self.loss is None else f"{title}    loss {number(self.loss)}"]
        if symbol is None:
            return "\n".join([*lines, overview(traced, item, head, self.checks(name), facts, colour)])
        lines.append(one_step(traced, item, head, symbol, *self.labels(name, item), self.checks(name), facts, colour,
                              width))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return frame(self.page().html)

    def _live_within(self, limit: int, stories: Sequence[Json]) -> tuple[Json | None, str | None]:
        """The live model of a page of at most `limit` bytes that tells `stories`, or why it has none."""
        if isinstance(self.live, str):
            return None, self.live
        # Of a page that is too large for its parameters alone nothing need be built and written.
        if self.live.model.num_parameters() * BYTES_PER_NUMBER < limit:
            if self.live.problem is not None:
                return None, self.live.problem
            size = len(self._html([], model=self.live.json, stories=stories).encode()) + CHECKS * len(self.names)
            if size <= limit:
                return self.live.json, None
        return None, (f"its {self.live.model.num_parameters():,} parameters and its vocabulary do not fit into a page "
                      f"of {limit / 1e6:g} MB")

    def _live_page(self, model: Json, limit: int, **further: Any) -> Page:
        """A page with the live model; `further` are further fields of its data."""
        names = self.names

        def html(snapshots: Sequence[Snapshot]) -> str:
            data = [facts_of_attention(self.trace[name], self.checks(name), snapshots) for name in names]
            return self._html(data, model=model, **further)

        return Page(self._with_history(html, names, limit), names, [], None)

    def _with_history(self, html: Callable[[Sequence[Snapshot]], str], names: Sequence[str], limit: int) -> str:
        """The page that `html` makes with as many snapshots of the history as `limit` leaves room for."""
        bare = html([])
        snapshots = _thinned(self.history, (limit - len(bare.encode())) // max(1, self._snapshot_size(names)))
        return html(snapshots) if snapshots else bare

    def _fitting(self, limit: int, stories: Sequence[Json]) -> list[str]:
        """The first attentions of `preferred` that fit into a page without history; at least one."""
        room = limit - len(self._html([], stories=stories).encode())
        chosen: list[str] = []
        for name in self.preferred():
            room -= len(embedded_json(attention_data(self.trace[name], {}))) + CHECKS
            if room < 0 and chosen:
                break
            chosen.append(name)
        return [name for name in self.names if name in chosen]

    def _html(self, attentions: Sequence[Json], **further: Any) -> str:
        precision = str(self.trace[self.names[0]].context.dtype)
        data = page_data(self.title, self.loss, self.loss_name, precision, self.tokens, attentions, **further)
        return page_html(data)

    def _snapshot_size(self, names: Sequence[str]) -> int:
        """The bytes of one checkpoint in the page: A and dS in float32, in base64, with their JSON."""
        return sum(2 * (self.trace[name].scores.size * 4 * 4 // 3 + 100) for name in names)


@dataclass(frozen=True, repr=False)
class Page:
    """A page.

    Attributes:
        html: the page itself.
        shown: the attentions that are in it.
        left_out: those that are not.
        not_live: why the model does not run in it, in words; None where it does.
    """

    html: str
    shown: list[str]
    left_out: list[str]
    not_live: str | None

    def _repr_html_(self) -> str:
        return frame(self.html)


def _thinned(history: Sequence[Snapshot], count: int) -> list[Snapshot]:
    """At most `count` snapshots, evenly; the last is always among them."""
    if count >= len(history):
        return list(history)
    last = len(history) - 1
    return [history[round(last * (1 - part / max(1, count - 1)))] for part in reversed(range(count))]


def tokens_of(trace: Calls, source: Any = None, target: Any = None) -> Tokens:
    """Labels for a trace.

    Args:
        trace: a trace of any model.
        source, target: tokens, a list for each batch item, or one list if there is only one; None: positions.

    Raises:
        ValueError: more or fewer items than the batch has, or more tokens than an item has.
    """
    lengths = {"source": 0, "target": 0}
    items = 1
    for name in trace.names:
        attention = trace[name]
        items = max(items, attention.batch_size)
        for side, length in zip(sides(attention), attention.scores.shape[-2:], strict=True):
            lengths[side] = max(lengths[side], length)
    read = _padded("target", target, items, lengths["target"])
    following = [[*row[1:], ""] if target is not None and row else [""] * len(row) for row in read]
    return Tokens(_padded("source", source, items, lengths["source"]), read, following)


def _padded(side: str, given: Any, items: int, length: int) -> list[list[str]]:
    if given is None:
        return [[str(position) for position in range(length)] for _ in range(items)]
    rows = [list(given)] if given and isinstance(given[0], str) else [list(row) for row in given]
    if len(rows) != items:
        raise ValueError(f"{side}_tokens: a list for each of the {items} batch items expected, got {len(rows)}")
    for item, row in enumerate(rows):
        if len(row) > length:
            raise ValueError(f"{side}_tokens: {len(row)} tokens for batch item {item}, which has {length} positions")
    return [[*map(str, row), *["<pad>"] * (length - len(row))] for row in rows]
