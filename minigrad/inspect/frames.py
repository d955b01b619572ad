"""What runs inside of what: the frames that a tool keeps while it watches; and what nodes tell of themselves."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any

from minigrad.device import is_array
from minigrad.engine.node import Node, Saved, TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.engine.watch import Watcher
from minigrad.func.trees import tree_leaves


@dataclass(slots=True, eq=False, repr=False)
class Frame:
    """Something that runs, or has run.

    Attributes:
        kind: "operation", which the gradient rules of one are as well, "module", or "span" (see `span`).
        name: of the operation, the dotted path of the module, the name of the span.
        outer: the frame in which it runs, in the same thread; the outermost one of a thread is of no kind.
        modules: the calls of modules around it, the outermost first, with itself if it is one; around gradient rules
            those of their operation.
        backward: whether it is a part of a backward pass.
        rules: whether it is the gradient rules of a recorded operation.
        begin, end, own: nanoseconds, in a profile; `own` are those outside of the frames in it.
        note: what else a tool keeps of it.
    """

    kind: str = ""
    name: str = ""
    outer: Frame | None = None
    modules: tuple[Frame, ...] = ()
    backward: bool = False
    rules: bool = False
    begin: int = 0
    end: int = 0
    own: int = 0
    note: Any = None

    def around(self, kind: str) -> list[Frame]:
        """The frames of a kind to which it belongs, the innermost first, itself if it is one."""
        if kind == "module":
            return [*self.modules[::-1]]
        outer = [] if self.outer is None else self.outer.around(kind)
        return [self, *outer] if self.kind == kind else outer

    @property
    def module(self) -> str:
        """The path of the module in which it runs, or ""."""
        return self.modules[-1].name if self.modules else ""


class Running(threading.local):
    """The innermost frame of each thread; around all others is one of no kind."""

    frame: Any = Frame()


class FrameWatcher(Watcher):
    """Base of the tools: it keeps the frames of each thread.

    Args:
        model: the module from which dotted names are counted; by default the outermost one that is called, under the
            name of its class.

    Attributes:
        names: of modules and parameters, dotted, by id.
        recorded: the frames in which nodes were recorded.
    """

    def __init__(self, model: Any = None) -> None:
        self.names: dict[int, str] = {}
        self.recorded = weakref.WeakKeyDictionary[Node, Frame]()
        self.running = Running()
        self._named: list[Any] = []  # the modules whose parts have names: so the ids stay theirs
        if model is not None:
            self._give_names(model, "")

    def enter(self, what: Any) -> Frame:
        """The frame of what begins."""
        outer = self.running.frame
        frame = Frame("operation", "", outer, outer.modules, outer.backward or what == "backward")
        if isinstance(what, Node):
            frame.name, frame.rules, frame.modules = what.primitive.name, True, self.recorded.get(what, outer).modules
        elif isinstance(what, Primitive):
            frame.name = what.name
        elif isinstance(what, str):
            frame.kind, frame.name = "span", what
        else:
            if id(what) not in self.names:
                self._give_names(what, type(what).__name__)
            frame.kind, frame.name, frame.modules = "module", self.names[id(what)], (*outer.modules, frame)
        self.running.frame = frame
        return frame

    def leave(self, what: Any, made: Any) -> tuple[Frame, Node | None]:
        """Close the innermost frame; return it, and the node of an operation that was recorded."""
        frame, node = self.running.frame, node_of(what, made)
        self.running.frame = frame.outer
        if node is not None:
            self.recorded[node] = frame
        return frame, node

    def _give_names(self, module: Any, path: str) -> None:
        self._named.append(module)
        for below, thing in (*module.named_modules(), *module.named_parameters()):
            self.names[id(thing)] = ".".join(filter(None, (path, below))) or type(module).__name__


def node_of(what: Any, made: Any) -> Node | None:
    """The node of an operation that has ended; None where no node was recorded."""
    return made._node if isinstance(what, Primitive) and made is not None else None


def input_names(node: Node) -> tuple[str, ...]:
    """The argument that each parent was given for."""
    return node.plan.names or ("input",) * len(node.parents)  # a checkpoint has parents without names


def saved_by(node: Node) -> list[tuple[str, Any]]:
    """The arrays that `node` saved, under the names of operands, "out", and those of `Saved`."""
    names = [node.primitive.parameters[i] if kind == "value" else kind for kind, i in node.plan.keep] or ["arguments"]
    return [(part, array) for name, value in zip(names, node.saved, strict=False)  # it may be freed
            for part, arrays in (vars(value) if isinstance(value, Saved) else {name: value}).items()
            for array in arrays_in(arrays)]


def leaves_in(value: Any) -> list[Any]:
    """The arrays, numbers and whatever else there is among arguments, gradients, or saved values."""
    return [leaf._data if isinstance(leaf, TensorBase) else leaf for leaf in tree_leaves(value)]


def arrays_in(value: Any) -> list[Any]:
    """The arrays among them."""
    return [*filter(is_array, leaves_in(value))]
