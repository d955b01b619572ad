"""A computation and its gradients as a program of NumPy alone: `program` writes each operation as a line.

The forward and the backward run as ever, by definitions, on arrays that write down what NumPy is asked to do with them.
What depends on no parameter (ids, masks, a dropout mask) is a constant of the program, which is right for these inputs.
"""

from __future__ import annotations

import json
import linecache
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partialmethod
from itertools import count, groupby
from typing import Any

import numpy as np

from minigrad.engine.node import Node
from minigrad.engine.primitive import Primitive, only_definitions
from minigrad.engine.watch import span, watch
from minigrad.inspect.frames import Frame, FrameWatcher, arrays_in
from minigrad.inspect.lines import FUNCTIONS, PACKAGE
from minigrad.nn import Module
from minigrad.tensor.gradients import backward

SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "matmul": "@", "power": "**", "greater": ">",
           "greater_equal": ">=", "less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!="}
METHODS = re.findall(r"\w+", "argmax argmin argsort astype copy cumsum flatten max mean min prod ravel repeat reshape "
                             "squeeze std sum swapaxes take transpose var")


class Value(str):
    """An array of the program, or a tuple of numbers in it; as a string, what stands for it in a line: ⟨7⟩.

    Attributes:
        name: what it should be called, "" if nobody said.
        shape: its shape.
        text: of what no line makes: how it is written.
    """

    name: str
    shape: tuple[int, ...]
    text: str


@dataclass
class Line:
    """A line that makes a value, or `changes` it in place.

    Attributes:
        template: its text, with values that have no name yet.
        frame: what it runs in.
    """

    value: Value
    template: str
    frame: Frame | None
    changes: bool

    @property
    def values(self) -> list[str]:
        """All that occur in it."""
        return re.findall("⟨[0-9]+⟩", self.template)

    def text(self, names: Mapping[str, str]) -> str:
        """The line, with these names."""
        return re.sub("⟨[0-9]+⟩", lambda found: names[found[0]], self.template)


class Traced(np.ndarray[Any, Any]):
    """An array that writes down what NumPy is asked to do with it."""

    traced: Value
    writer: Writer

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        made, out = getattr(ufunc, method)(*bare(args), **bare(options)), options.pop("out", ())
        name, write = f"{ufunc.__name__}.{method}".removesuffix(".__call__"), self.writer
        text = f"{'np' if hasattr(np, ufunc.__name__) else 'special'}.{name}({write.shown(*args, **options)})"
        if name in SYMBOLS and not options:
            text = f" {SYMBOLS[name]} ".join(map(write.shown, args))
        if out and made.ndim:  # x -= y; a number is no array in the program: there x = x - y
            return write.change(out[0], f"{write.changed(out[0])}[...] = {text}")
        return write.change(args[0], text) if method == "at" else write.made(made, text)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        text = f"np.{function.__name__}({self.writer.shown(*args, **options)})"
        return self.writer.made(function(*bare(args), **bare(options)), text)

    def __getitem__(self, index: Any) -> Any:
        return self.writer.made(bare(self)[bare(index)], self.writer.entry(self, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        bare(self)[bare(index)] = bare(value)
        self.writer.change(self, f"{self.writer.entry(self, index)} = {self.writer.shown(value)}")

    @property
    def mT(self) -> Any:
        """With the last two axes exchanged."""
        return self.writer.made(bare(self).mT, f"{self.traced}.mT")


def _method(self: Traced, name: str, *args: Any, **options: Any) -> Any:
    made = getattr(bare(self), name)(*bare(args), **bare(options))
    if name == "astype" and made.dtype == self.dtype:
        return self.writer.trace(made, self.traced)
    shown = {key: value for key, value in options.items() if value is not None and value is not False}
    return self.writer.made(made, f"{self.traced}.{name}({self.writer.shown(*args, **shown)})")


for _name in METHODS:
    setattr(Traced, _name, partialmethod(_method, _name))


def bare(value: Any) -> Any:
    """The same with plain arrays in the place of traced ones."""
    if isinstance(value, dict):
        return {key: bare(part) for key, part in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(bare, value))
    return value.view(np.ndarray) if isinstance(value, Traced) else value


class Writer(FrameWatcher):
    """Writes the lines.

    Attributes:
        lines: in the order in which they ran.
        values: by what stands for them in lines.
        given: the values that are not made, and their arrays, by the arrays' ids.
    """

    buffers = False  # what is added into them in place would not be seen

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.lines: list[Line] = []
        self.values: dict[str, Value] = {}
        self.given: dict[int, tuple[Value, Any]] = {}
        self.kind = type("Traced", (Traced,), {"writer": self})
        self.place: Any = None  # the line of source of the last value

    def trace(self, array: Any, value: Value) -> Any:
        """`array` as one that writes down what is done with it."""
        traced: Any = np.asarray(array).view(self.kind)
        traced.traced = value
        return traced

    def value(self, name: str, shape: tuple[int, ...] = (), text: str = "") -> Value:
        """A new value."""
        value = Value(f"⟨{len(self.values)}⟩")
        value.name, value.shape, value.text = name, shape, text
        self.values[value] = value
        return value

    def give(self, array: Any, name: str) -> Value:
        """The value of an array that the program does not make."""
        if id(array) not in self.given:
            self.given[id(array)] = self.value(name, array.shape), array
        return self.given[id(array)][0]

    def of(self, array: Any, name: str) -> Value:
        """The value of any array: one that is not made is called `name`."""
        return array.traced if isinstance(array, Traced) else self.give(array, name)

    def shown(self, *args: Any, **options: Any) -> str:
        """Arguments as they stand in a line."""
        return ", ".join([*map(self.one, args), *[f"{name}={self.one(value)}" for name, value in options.items()]])

    def entry(self, array: Traced, index: Any) -> str:
        """``array[index]``."""
        parts = [self.bounds(part) if isinstance(part, slice) else self.one(part)
                 for part in (index if isinstance(index, tuple) else (index,))]
        return f"{array.traced}[{', '.join(parts) or '()'}]"

    def bounds(self, part: slice) -> str:
        """A slice as it stands in brackets."""
        return ":".join("" if n is None else str(n) for n in (part.start, part.stop, part.step)).removesuffix(":")

    def one(self, arg: Any) -> str:
        """An argument as it stands in a line."""
        if isinstance(arg, Traced) or (isinstance(arg, np.ndarray) and arg.ndim):
            return self.of(arg, "constant")
        if isinstance(arg, tuple) and all(type(part) is int for part in arg):
            return self.value("shape", text=repr(arg))
        if isinstance(arg, (tuple, list)):
            return f"[{self.shown(*arg)}]" if isinstance(arg, list) else f"({self.shown(*arg)},)"
        if isinstance(arg, (np.dtype, type)):
            return f"np.{np.dtype(arg)}"
        text = repr(arg[()] if isinstance(arg, np.ndarray) else arg).replace("Ellipsis", "...")
        return re.sub(r"\b(inf|nan)\b", r"np.\1", text)

    def write(self, value: Value, text: str, changes: bool) -> None:
        """Add a line."""
        self.lines.append(Line(value, text, self.running.frames[-1], changes))

    def made(self, made: Any, text: str) -> Any:
        """What NumPy made, traced; anything but an array as it is."""
        if not isinstance(made, (np.ndarray, np.generic)):
            return made
        value, place = self.value("", made.shape), self.place
        value.name, self.place = source_name()
        if place == self.place and self.lines[-1].value.name == value.name:  # only the last of a line has its name
            self.lines[-1].value.name = ""
        self.write(value, f"{value} = {text}", False)
        return self.trace(made, value)

    def change(self, array: Traced, text: str) -> Traced:
        """`array`, which a line has changed in place."""
        self.write(self.changed(array), text, True)
        return array

    def changed(self, array: Any) -> Value:
        """The value of an array into which is written what depends on a parameter; RuntimeError for a constant."""
        if not isinstance(array, Traced):
            raise RuntimeError(f"program: what depends on a parameter is written in place into a constant of shape "
                               f"{array.shape}, which would keep that value whatever the parameter is; compute a new "
                               "tensor in its place, for instance by minigrad.where or minigrad.concatenate")
        return array.traced

    def writes(self, tensor: Any, index: Any, value: Any) -> None:
        """RuntimeError for a write that the program would lack."""
        if any(isinstance(array, Traced) for array in arrays_in((index, value))):
            self.changed(tensor._data)

    def before(self, what: Any, given: Any) -> None:
        """An operation gives names to constants; the gradient that rules get is that of a value with a name."""
        self.enter(what).note = type(what).__name__
        self.place = None
        if isinstance(what, Node):
            self.of(getattr(given, "_data", given), "").name = f"d_{self.recorded[what].note.name}"
        elif isinstance(what, Primitive):
            for name, value in zip(what.parameters, given, strict=True):
                for array in arrays_in(value):
                    if array.ndim and not isinstance(array, Traced):
                        self.give(array, name)

    def after(self, what: Any, given: Any, made: Any) -> None:
        """What an operation made is called after it, if it has no better name."""
        frame = self.leave(what, made)
        if isinstance(what, Primitive) and made is not None:
            frame.note = self.of(made._data, what.name)
            frame.note.name = frame.note.name or what.name


def source_name() -> tuple[str, Any]:
    """The name that the running line of minigrad.functional, or of the program, assigns to; and where the line is.

    What a function of minigrad.functional returns has the name that its caller gives it.
    """
    place: Any = sys._getframe(2)
    while True:
        file = place.f_code.co_filename
        line = linecache.getline(file, place.f_lineno).strip()
        passes = line.startswith("return ") if file.startswith(FUNCTIONS) else file.startswith(PACKAGE)
        if place.f_code is program.__code__ or not passes:
            break
        place = place.f_back
    found = re.match(r"([a-z]\w*) [-+*/@]?= ", line)
    return found[1] if found else "", (id(place), place.f_lineno)


# ------------------------------------------------------------------------- the text


class Run:
    """Lines that ran one after the other in one call of a module, by its forward or by its rules.

    Attributes:
        values: that it makes.
        operands: the other values in its lines.
        form: what it has in common with runs that compute the same of other values.
    """

    def __init__(self, lines: list[Line]) -> None:
        frame = lines[0].frame
        self.lines = lines
        self.call = frame.modules[-1] if frame and frame.modules else None
        self.backward = bool(frame and frame.backward)
        self.values = [line.value for line in lines if not line.changes]
        found = dict.fromkeys(value for line in lines for value in line.values)
        self.operands = [value for value in found if value not in self.values]
        names = {value: f"v{i}" for i, value in enumerate((*self.operands, *self.values))}
        self.form = self.call and self.call.note, self.backward, *[line.text(names) for line in lines]


def named(wished: Mapping[str, str], taken: set[str]) -> dict[str, str]:
    """A name for each value, like the one that is wished, and none of those `taken`, to which it is added."""
    names: dict[str, str] = {}
    for value, name in wished.items():
        base = re.sub(r"\W", "_", name.rpartition(".")[2]) or "t"
        tries = (base if n == 1 else f"{base}_{n}" for n in count(1))
        names[value] = next(name for name in tries if name not in taken)
        taken.add(names[value])
    return names


def layout(writer: Writer, lines: list[Line], loss: Value, gradients: Mapping[str, Value]) -> str:
    """The program: a function for each kind of run that there is several times, and ``step(p)``."""
    runs = [Run(list(group)) for _, group in groupby(lines, lambda line: (
        line.frame and line.frame.modules[-1:], line.frame and line.frame.backward))]
    used = {loss, *gradients.values(), *[operand for run in runs for operand in run.operands]}
    alike: dict[Any, list[Run]] = {}
    for run in runs:
        alike.setdefault(run.form, []).append(run)
    folded = {form: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", form[0]).lower() + "_backward" * form[1]
              for form, group in alike.items() if form[0] and len(group) > 1 and len(group[0].lines) > 1}
    names: dict[Any, str] = named(folded | {
        value: value.name for run in runs for value in run.values if run.form not in folded or value in used},
        {"np", "special", "step", "p"})
    texts = {key: value.text for key, value in writer.values.items() if value.text}
    names |= texts
    text, calls = ["import numpy as np"], dict[Run, str]()
    for form in folded:
        first, group = alike[form][0], alike[form]
        # An argument for each operand, but for numbers that are the same in all; one for operands that always agree.
        rows = [[texts.get(run.operands[i], run.operands[i]) for run in group] for i in range(len(first.operands))]
        asked = [i for i, row in enumerate(rows)
                 if rows.index(row) == i and (writer.values[first.operands[i]].name != "shape" or len(set(row)) > 1)]
        given = [i for i in range(len(first.values)) if any(run.values[i] in used for run in group)]
        inner = [first.operands[i] for i in asked] + first.values
        own = texts | named({value: writer.values[value].name for value in inner}, {"np", "special"})
        own |= {first.operands[i]: own[first.operands[rows.index(row)]] for i, row in enumerate(rows)}
        text += ["", "", f"def {names[form]}({', '.join(own[first.operands[i]] for i in asked)}):",
                 *[f"    {line.text(own)}" for line in first.lines],
                 f"    return {', '.join(own[first.values[i]] for i in given)}"]
        for run in group:
            made = ", ".join(names.get(run.values[i], "_") for i in given) or "_"
            calls[run] = f"{made} = {names[form]}({', '.join(names[run.operands[i]] for i in asked)})"
    text += ["", "", "def step(p):"]
    for run in runs:
        if run.backward and "    # the backward" not in text:
            text += ["", "    # the backward"]
        title = f"# {run.call.name} ({run.call.note})" if run.call else ""
        if run in calls:
            text.append(f"    {calls[run]}  {title}")
        else:
            text += ["", f"    {title}"] if title else []
            text += [f"    {line.text(names)}  # {line.value.shape}" for line in run.lines]
    results = [f"        {quoted(name)}: {names[value]}," for name, value in gradients.items()]
    text += [f"    return {names[loss]}, {{", *results, "    }", ""]
    if any("special." in line for line in text):
        text.insert(1, "from scipy import special")
    return "\n".join(text)


def quoted(name: str) -> str:
    """A name as a string of Python."""
    return json.dumps(name, ensure_ascii=False)


def program(function: Callable[[], Any], wrt: Module | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Write the computation of a loss, and of its gradients, as a program that needs NumPy alone.

    One line is one operation; its comment has the shape. Names are those of parameters, and of the lines of
    minigrad.functional and of your program that assign the values; ``d_x`` is the gradient of x. What a module computes
    stands together, the backward in the reverse order of the forward, and what occurs several times is a function.

    Args:
        function: computes the loss, a single number.
        wrt: a module, or tensors by name, for whose gradients is asked.

    Returns:
        The text, which defines ``step(p)``, a function that returns the loss and the gradients by name; and the arrays
        `p` by name: parameters and constants.

    Raises:
        RuntimeError: what depends on a parameter is written in place into a constant.
    """
    tensors: dict[str, Any] = dict(wrt.named_parameters() if isinstance(wrt, Module) else wrt)
    writer, gradients = Writer(wrt if isinstance(wrt, Module) else None), dict[str, Value]()
    arrays = {name: tensor._data for name, tensor in tensors.items()}

    def receive(leaf: Any, gradient: Any, owned: bool) -> None:
        for name, tensor in tensors.items():
            if tensor is leaf:  # which may have several names
                gradients[name] = writer.of(gradient, "")
                gradients[name].name = f"d_{name.rpartition('.')[2]}"

    try:
        for name, tensor in tensors.items():
            value = writer.give(tensor._data, name)
            value.text, tensor._data = f"p[{quoted(name)}]", writer.trace(tensor._data, value)
        with only_definitions(), watch(writer):
            loss = function()
            with span("backward"):
                result, start = writer.of(loss._data, ""), np.ones_like(loss._data)
                result.name, writer.of(start, "").name = "loss", "d_loss"
                backward(loss, start, receive=receive)
    finally:
        for name, tensor in tensors.items():
            tensor._data = arrays[name]
    needed, lines = set[str]({result, *gradients.values()}), list[Line]()
    for line in reversed(writer.lines):
        if line.value in needed:
            lines.insert(0, line)
            needed.update(line.values)
    constants = {str(value): array for value, array in writer.given.values() if value in needed and not value.text}
    for key, name in named({key: writer.values[key].name for key in constants}, set(tensors)).items():
        writer.values[key].text, arrays[name] = f"p[{quoted(name)}]", constants[key]
    return layout(writer, lines, result, gradients), arrays
