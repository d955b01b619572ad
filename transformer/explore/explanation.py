"""An explanation: a trace with its tokens and its checks; shown as a page, as text, in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from transformer.explore.calls import NONE, Calls
from transformer.explore.checks import Check, Loss, measure
from transformer.explore.data import Json, Tokens, facts_of_attention, sides
from transformer.explore.labels import names, row_names
from transformer.explore.live import LIMIT
from transformer.explore.page import frame, page_html
from transformer.explore.stories import Story, stories_of_page
from transformer.explore.text import number, one_step, overview, printable, text_of

INSTEAD = "--text prints its attentions, and transformer.trace records them in Python"


@dataclass(repr=False)
class Explanation:
    """A backward pass through every attention of a model, for display.

    Attributes:
        trace: the trace, after the backward.
        title: the title.
        loss: the value of the loss, or None if it is not known.
        again: computes the loss again, to compare gradients with finite differences; None: no comparison.
        tokens: what rows and columns are named by; None: positions.
        live: the model that runs in a page (transformer/explore/live.py); or why none can, in words.
        limit: the MB that a page may have.
    """

    trace: Calls
    title: str
    loss: float | None = None
    again: Loss | None = None
    tokens: Tokens | None = None
    live: Json | str = "it is not the translator of a trained run"
    limit: float = LIMIT
    _checks: dict[str, dict[str, list[Check]]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The attentions that a gradient has reached, in the order in which they ran.

        Raises:
            ValueError: a gradient has reached none.
        """
        if not self.trace:
            raise ValueError(f"no attention ran inside the trace block: there is nothing to explain; there are {NONE}")
        reached = [name for name, attention in self.trace.items() if attention.reached]
        if not reached:
            self.trace[self.trace.names[0]].gradient("context")  # raises, and says what to do
        return reached

    def named(self, name: str) -> str:
        """The dotted name of an attention, if there is one; ValueError lists those that there are."""
        if name not in self.names:
            raise ValueError(f"there is no attention {name!r}; there are {', '.join(self.names)}")
        return name

    def labels(self, name: str, item: int = 0) -> tuple[list[str], list[str]]:
        """The names of the queries and of the keys of an attention, as in transformer/explore/labels.py."""
        attention = self.trace[name]
        if self.tokens is None:
            queries, keys = ([str(position) for position in range(n)] for n in attention.scores.shape[-2:])
            return queries, keys
        of_queries, of_keys = sides(attention)
        source, target, following = (side[item] for side in self.tokens)
        rows = row_names(target, following) if of_queries == "target" else names(source)
        return rows, names(target if of_keys == "target" else source)

    def checks(self, name: str) -> dict[str, list[Check]]:
        """Finite differences of each tensor of an attention (`measure`); empty if the loss cannot be computed again.

        They are measured at the first call.
        """
        if name not in self._checks:
            self._checks[name] = {} if self.again is None else measure(self.trace, name, self.again)
        return self._checks[name]

    def page(self, opens: str | None = None, stories: Iterable[Story] = ()) -> str:
        """The explanation as an HTML page in which the model runs.

        Args:
            opens: the dotted name of the attention that the page opens with; None: it opens at the loss.
            stories: files of stories for the page to tell, or the same as dicts (docs/stories.md); it opens with the
                first, and has its own besides.

        Raises:
            ValueError: the model cannot run in a page, an unknown attention, or a story that cannot be told.
            OSError: the file of a story cannot be read.
        """
        told, opens = stories_of_page(stories), None if opens is None else self.named(opens)
        if isinstance(self.live, str):
            raise ValueError(f"the model does not run in a page: {self.live}; {INSTEAD}")
        attentions = [facts_of_attention(self.trace[name], self.checks(name)) for name in self.names]
        page = page_html({"title": self.title, "attentions": attentions, "model": self.live, "opens": opens,
                          "stories": told})
        if len(page.encode()) > self.limit * 1e6:
            raise ValueError(f"the model does not run in a page: it would have more than {self.limit:g} MB; {INSTEAD}")
        return page

    def to_html(self, path: str | PathLike[str], stories: Iterable[Story] = ()) -> None:
        """Write the page to `path`. Errors as of `page`, and OSError."""
        Path(path).write_text(self.page(stories=stories), encoding="utf-8")

    def _repr_html_(self) -> str | None:
        return None if isinstance(self.live, str) else frame(self.page())

    def text(self, attention: str | None = None, item: int = 0, head: int = 0, step: str | None = None,
             width: int = 120) -> str:
        """One head of one attention for a terminal: all its steps, or one of them as a matrix.

        Args:
            attention: its dotted name; None: the last cross-attention, or the last of all.
            item, head: the indices of the batch item and the head.
            step: a symbol such as "dS" (transformer/explore/steps.py), or a label such as "dW_Q"; None: all.
            width: of the terminal, in columns.

        Raises:
            ValueError: an unknown attention or step.
            IndexError: there is no such item or head.
        """
        crossing = [name for name in self.names if self.trace[name].kind == "cross"]
        name = (crossing or self.names)[-1] if attention is None else self.named(attention)
        shown, checks = self.trace[name].head(item, head), self.checks(name)
        lines = (overview(shown, checks) if step is None else
                 one_step(shown, step, *self.labels(name, item), checks, width))
        title = printable(" ".join(self.title.split())) + ("" if self.loss is None else f"    loss {number(self.loss)}")
        return f"{title}\n{text_of(shown, lines)}"
