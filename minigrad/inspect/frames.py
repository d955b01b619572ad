"""What runs inside of what: the frames that a tool keeps while it watches; and what nodes tell of themselves."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minigrad.device import is_array
from minigrad.engine.node import Node, Saved, TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.engine.watch import Watcher


@dataclass(slots=True, eq=False, repr=False)
class Frame:
    """Something that runs, or has run.

    Attributes:
        kind: "operation", which the gradient rules of one are as well, "module", or "span" (see `span`).
        name: of the operation, the dotted path of the module, the name of the span.
        outer: the frame in which it runs, in the same thread, or None.
        modules: the calls of modules around it, the outermost first; around gradient rules those of their operation.
        backward: whether it is a part of a backward pass.
        node: of gradient rules the number of their node, else None.
        begin, end, own: nanoseconds, in a profile; `own` are those outside of the frames in it.
        note: what else a tool keeps of it.
    """

    kind: str
    name: str
    outer: Frame | None
    modules: tuple[Frame, ...]
    backward: bool
    node: int | None = None
    begin: int = 0
    end: int = 0
    own: int = 0
    note: Any = None

    def around(self, kind: str) -> list[Frame]:
        """The frames of a kind to which it belongs, the innermost first, itself if it is one."""
        itself = [self] if self.kind == kind else []
        if kind == "module":
            return [*itself, *self.modules[::-1]]
        return itself if self.outer is None else [*itself, *self.outer.around(kind)]

    @property
    def module(self) -> str:
        """The path of the module in which it runs, or ""."""
        return self.modules[-1].name if self.modules else ""


class FrameWatcher(Watcher):
    """Base of the tools: it keeps the frames of each thread.

    Args:
        model: the module from which dotted names are counted; by default the outermost one that is called, under the
            name of its class.

    Attributes:
        names: of modules, parameters and buffers, dotted, by id.
        recorded: the frames in which nodes were recorded.
    """

    def __init__(self, model: Any = None) -> None:
        self.names: dict[int, str] = {}
        self.recorded: weakref.WeakKeyDictionary[Node, Frame] = weakref.WeakKeyDictionary()
        self._threads = threading.local()
        self._named: list[Any] = []  # the modules whose parts have names: so the ids stay theirs
        if model is not None:
            self._give_names(model, "")

    @property
    def running(self) -> list[Frame]:
        """The frames of this thread, the innermost last."""
        frames: list[Frame] = self._threads.__dict__.setdefault("frames", [])
        return frames

    def enter(self, what: Any) -> Frame:
        """The frame of what begins."""
        outer = self.running[-1] if self.running else None
        modules = tuple(outer.around("module")[::-1]) if outer is not None else ()
        backward = what == "backward" or (outer is not None and outer.backward)
        if isinstance(what, Node):
            modules = self.recorded[what].modules if what in self.recorded else ()
            frame = Frame("operation", what.primitive.name, outer, modules, True, what.number)
        elif isinstance(what, (str, Primitive)):
            kind, name = ("span", what) if isinstance(what, str) else ("operation", what.name)
            frame = Frame(kind, name, outer, modules, backward)
        else:
            if id(what) not in self.names:
                self._give_names(what, type(what).__name__)
            frame = Frame("module", self.names[id(what)], outer, modules, backward)
        self.running.append(frame)
        return frame

    def leave(self, what: Any, made: Any) -> Frame:
        """The frame of what has ended."""
        frame = self.running.pop()
        if isinstance(what, Primitive) and made is not None and made._node is not None:
            self.recorded[made._node] = frame
        return frame

    def _give_names(self, module: Any, path: str) -> None:
        self._named.append(module)
        for below, thing in (*module.named_modules(), *module.named_parameters(), *module.named_buffers()):
            self.names[id(thing)] = ".".join(filter(None, (path, below))) or type(module).__name__


def input_names(node: Node) -> tuple[str, ...]:
    """The argument that each parent was given for."""
    return node.plan.names or ("input",) * len(node.parents)  # a checkpoint has parents without names


def saved_by(node: Node) -> Iterator[tuple[str, Any]]:
    """What `node` saved, under the names of operands, "out", and those of `Saved`."""
    names = [node.primitive.parameters[i] if kind == "value" else kind for kind, i in node.plan.keep] or ["arguments"]
    for name, value in zip(names, node.saved, strict=False):  # it may be freed
        yield from vars(value).items() if isinstance(value, Saved) else [(name, value)]


def arrays_in(value: Any) -> Iterator[Any]:
    """The arrays among arguments, gradients, or saved values."""
    if isinstance(value, TensorBase):
        yield value._data
    elif is_array(value):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays_in(part)
    elif hasattr(value, "kwargs"):  # the call that a checkpoint makes again
        yield from arrays_in((*value.args, *value.kwargs.values()))
