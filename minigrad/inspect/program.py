"""A computation and its gradients as a program of NumPy alone: `program` writes each operation as a line.

The forward and the backward run as ever, by definitions, on arrays that write down what NumPy is asked to do with them.
What depends on no parameter (ids, masks, a dropout mask) is a constant of the program, which is right for these inputs.

While lines are written, ⟨7⟩ stands in them for a value that a line makes, whose name is found in the end. ⟨p["bias"]⟩
is one that no line makes, and ⟨(2, 3) 8⟩ a shape: in a function that several runs share, they are arguments.
"""

from __future__ import annotations

import json
import linecache
import operator
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import partial, partialmethod
from itertools import count, groupby
from typing import Any, NamedTuple

import numpy as np

from minigrad.engine.node import Node
from minigrad.engine.primitive import Primitive, only_definitions
from minigrad.engine.watch import span, watch
from minigrad.func.trees import tree_map
from minigrad.inspect.frames import Frame, FrameWatcher, arrays_in
from minigrad.inspect.lines import FUNCTIONS, PACKAGE
from minigrad.nn import Module
from minigrad.tensor.gradients import arrived, backward

SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "matmul": "@", "power": "**", "greater": ">",
           "greater_equal": ">=", "less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!="}
METHODS = re.findall(r"\w+", "argmax argmin argsort astype copy cumsum flatten max mean min prod ravel repeat reshape "
                             "squeeze std sum swapaxes take transpose var")
Line = tuple[str, Any, Frame]  # its text, the shape of its value, and what it runs in


def entry(name: str) -> str:
    """The value of an entry of p."""
    return f"⟨p[{json.dumps(name)}]⟩"


def values_in(line: str) -> list[str]:
    """The values in a line, of which it makes or changes the first."""
    return re.findall("⟨.*?⟩", line)


def with_names(line: str, names: Mapping[str, str]) -> str:
    """A line with these names; values that have none there are written as they are."""
    return re.sub("⟨(.*?)( [0-9]+)?⟩", lambda found: names.get(found[0], found[1]), line)


class Traced(np.ndarray[Any, Any]):
    """An array that writes down what NumPy is asked to do with it."""

    traced: str
    writer: Writer

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        run, out = partial(getattr(ufunc, method), *args, **options), options.pop("out", ())
        name, write = f"{ufunc.__name__}.{method}".removesuffix(".__call__"), self.writer
        text = f"{'np' if hasattr(np, ufunc.__name__) else 'special'}.{name}({write.shown(*args, **options)})"
        if name in SYMBOLS and not options:
            text = f" {SYMBOLS[name]} ".join(map(write.one, args))
        if method == "at":
            return write.run(text, run, args[0])
        if out and out[0].ndim:  # x -= y; a number is no array in the program: there x = x - y
            return write.run(f"{write.one(out[0])}[...] = {text}", run, out[0])
        return write.run(text, run)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        text = f"np.{function.__name__}({self.writer.shown(*args, **options)})"
        return self.writer.run(text, partial(function, *args, **options))

    def __getitem__(self, index: Any) -> Any:
        return self.writer.run(self._entry(index), partial(operator.getitem, self, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        text = f"{self._entry(index)} = {self.writer.one(value)}"
        self.writer.run(text, partial(operator.setitem, self, index, value), self)

    def _entry(self, index: Any) -> str:
        parts = [f"{part.start}:{part.stop}:{part.step}".replace("None", "").removesuffix(":")
                 if isinstance(part, slice) else self.writer.one(part)
                 for part in (index if isinstance(index, tuple) else (index,))]
        return f"{self.traced}[{', '.join(parts) or '()'}]"

    @property
    def mT(self) -> Any:
        """With the last two axes exchanged."""
        return self.writer.run(f"{self.traced}.mT", partial(operator.attrgetter("mT"), self))

    def _method(self, name: str, *args: Any, **options: Any) -> Any:
        shown = {key: value for key, value in options.items() if value is not None and value is not False}
        text = f"{self.traced}.{name}({self.writer.shown(*args, **shown)})"
        return self.writer.run(text, partial(getattr(np.ndarray, name), self, *args, **options))


for _name in METHODS:
    setattr(Traced, _name, partialmethod(Traced._method, _name))


class Writer(FrameWatcher):
    """Writes the lines.

    Attributes:
        lines: in the order in which they ran.
        arrays: the entries of p, parameters and constants, by name.
        titles: what values should be called; "" if nobody said. Shapes have none.
        homes: of gradients, the path of the module that made the value.
        latest: the value that was made last, and the line of source that made it.
    """

    buffers = False  # what is added into them in place would not be seen

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.lines: list[Line] = []
        self.arrays: dict[str, Any] = {}
        self.titles: dict[str, str] = {}
        self.homes: dict[str, str] = {}
        self.latest: Any = "", None
        self.numbers = count()

    def trace(self, array: Any, value: str) -> Any:
        """`array` as one that writes down what is done with it."""
        traced: Any = np.asarray(array).view(Traced)
        traced.writer, traced.traced = self, value
        return traced

    def of(self, array: Any, title: str = "constant") -> str:
        """The value of any array; a constant has this title."""
        if isinstance(array, Traced):
            return array.traced
        name = next((name for name, one in self.arrays.items() if one is array), None)
        if name is None:
            name = named({0: title}, self.arrays)[0]
            self.arrays[name], self.titles[entry(name)] = array, title
        return entry(name)

    def shown(self, *args: Any, **options: Any) -> str:
        """Arguments as they stand in a line."""
        return ", ".join([*map(self.one, args), *[f"{name}={self.one(value)}" for name, value in options.items()]])

    def one(self, arg: Any) -> str:
        """An argument as it stands in a line."""
        if isinstance(arg, Traced) or (isinstance(arg, np.ndarray) and arg.ndim):
            return self.of(arg)
        if isinstance(arg, tuple) and all(type(part) is int for part in arg):
            return f"⟨{arg} {next(self.numbers)}⟩"
        if isinstance(arg, (tuple, list)):
            return f"[{self.shown(*arg)}]" if isinstance(arg, list) else f"({self.shown(*arg)},)"
        if isinstance(arg, (np.dtype, type)):
            return f"np.{np.dtype(arg)}"
        text = repr(arg[()] if isinstance(arg, np.ndarray) else arg).replace("Ellipsis", "...")
        return re.sub(r"\b(inf|nan)\b", r"np.\1", text)

    def run(self, text: str, call: partial[Any], changed: Any = None) -> Any:
        """Write a line for a call of NumPy; return its result, or the array that it has `changed` in place, traced."""
        bare: Any = tree_map(lambda one: one.view(np.ndarray) if isinstance(one, Traced) else one,
                             (call.args, call.keywords))
        made = call.func(*bare[0], **bare[1])
        if changed is not None:
            self.writes(changed, (), call.args)
        else:
            if not isinstance(made, (np.ndarray, np.generic)):
                return made
            title, place = source_name()
            if place == self.latest[1]:  # only the last value of a line of source has its name
                self.titles[self.latest[0]] = ""
            value = f"⟨{next(self.numbers)}⟩"
            self.latest, self.titles[value] = (value, place), title
            changed, text = self.trace(made, value), f"{value} = {text}"
        self.lines.append((text, changed.shape, self.running.frames[-1]))
        return changed

    def writes(self, tensor: Any, index: Any, value: Any) -> None:
        """RuntimeError for a constant, into which goes what depends on a parameter."""
        array = getattr(tensor, "_data", tensor)
        if not isinstance(array, Traced) and any(isinstance(one, Traced) for one in arrays_in((index, value))):
            raise RuntimeError(f"program: what depends on a parameter is written in place into a constant of shape "
                               f"{array.shape}, which would keep that value whatever the parameter is; compute a new "
                               "tensor in its place, for instance by minigrad.where or minigrad.concatenate")

    def before(self, what: Any, given: Any) -> None:
        """An operation gives names to constants; the gradient that rules get is that of a value with a name."""
        self.enter(what).note = type(what).__name__
        self.latest = "", None
        if isinstance(what, Node):
            gradient = self.of(getattr(given, "_data", given))
            self.titles[gradient] = f"d_{self.titles[self.recorded[what].note]}"
            self.homes.setdefault(gradient, self.running.frames[-1].module)
        elif isinstance(what, Primitive):
            for name, value in zip(what.parameters, given, strict=True):
                for array in arrays_in(value):
                    self.of(array, name)

    def after(self, what: Any, given: Any, made: Any) -> None:
        """What an operation made is called after it, if it has no better name."""
        frame, _ = self.leave(what, made)
        if isinstance(what, Primitive) and made is not None:
            frame.note = self.of(made._data, what.name)
            self.titles[frame.note] = self.titles[frame.note] or what.name


NAMED = re.compile(r'(?:return|[a-z]\w* =) tap\("(\w+)"|([a-z]\w*) [-+*/@]?= |(return )')


def source_name() -> tuple[str, Any]:
    """The name that the running line of minigrad.functional, or of the program, taps or assigns to; and where it is.

    What a function of minigrad.functional returns has the name that its caller gives it.
    """
    for place, number in traceback.walk_stack(sys._getframe(2)):
        file, ends = place.f_code.co_filename, place.f_code is sections.__code__
        found = None if ends else NAMED.match(linecache.getline(file, number).strip())
        goes_on = found and found[3] if file.startswith(FUNCTIONS) else file.startswith(PACKAGE)
        if ends or not goes_on:
            break
    return (found and (found[1] or found[2])) or "", (id(place), number)


# ------------------------------------------------------------------------- the text


class Section(NamedTuple):
    """Lines of a program that belong together: a function, or what a module, or the loss, computes in ``step``.

    Attributes:
        modules: the dotted paths of those whose lines they are, several of a function, "" of the loss; where gradients
            are added up, of the one that made the value, and of the one before.
        backward: whether they are a part of the backward.
        lines: their text.
    """

    modules: list[str]
    backward: bool
    lines: list[str]


class Run:
    """Lines that ran one after the other in one call of a module, by its forward or by its rules.

    Attributes:
        lines: each with what stands behind it, a shape or a title.
        module, title: the path of the module, and with its class; "" outside of modules.
        made: the values that the lines make.
        operands: the other values in them.
        form: what it has in common with runs that compute the same of other values.
    """

    def __init__(self, lines: list[Line]) -> None:
        frame = lines[0][2]
        self.backward, self.module, kind = frame.backward, frame.module, frame.modules[-1].note if frame.modules else ""
        self.title = f"{frame.module} ({kind})" if kind else ""
        self.lines = [line[:2] for line in lines]
        self.made = [line.partition(" = ")[0] for line, *_ in lines if re.match("⟨[0-9]+⟩ = ", line)]
        found = dict.fromkeys(value for line, *_ in lines for value in values_in(line))
        self.operands = [value for value in found if value not in self.made]
        names = {value: f"v{i}" for i, value in enumerate(found)}
        self.form = kind, frame.backward, *[with_names(line, names) for line, *_ in lines]


def named(titles: Mapping[Any, str], taken: Iterable[str] = ()) -> dict[Any, str]:
    """A name for each key, like its title, none of them twice and none that is `taken`."""
    names, used = dict[Any, str](), {"np", "special", "step", "p", *taken}
    for key, title in titles.items():
        base = re.sub(r"\W", "_", title) or "t"
        tries = (base if n == 1 else f"{base}_{n}" for n in count(1))
        names[key] = next(name for name in tries if name not in used)
        used.add(names[key])
    return names


def fold(name: str, group: list[Run], used: set[str], titles: Mapping[str, str]) -> Section:
    """One function for the equal sections of `group`, which become calls of it."""
    first = group[0]
    # Of each operand, what it is in each run: an argument, but for shapes that are the same in all.
    rows = list(zip(*[[with_names(value, {}) for value in run.operands] for run in group], strict=True))
    asked = {row: i for i, row in enumerate(rows) if len(set(row)) > 1 or first.operands[i] in titles}
    given = [i for i in range(len(first.made)) if any(run.made[i] in used for run in group)]
    own = named({row: titles.get(first.operands[i], "shape") for row, i in asked.items()}
                | {value: titles[value] for value in first.made})
    own |= {value: own[row] for row, value in zip(rows, first.operands, strict=True) if row in asked}
    text = [f"def {name}({', '.join(own[row] for row in asked)}):",
            *[f"    {with_names(line, own)}" for line, _ in first.lines],
            f"    return {', '.join(own[first.made[i]] for i in given)}", "", ""]
    for run in group:
        made = ", ".join(run.made[i] if run.made[i] in used else "_" for i in given) or "_"
        call = f"{made} = {name}({', '.join(run.operands[i] for i in asked.values())})"
        run.lines, run.title = [(call, run.title)], ""
    return Section([run.module for run in group], first.backward, text)


def layout(writer: Writer, lines: list[Line], loss: str, gradients: Mapping[str, str]) -> list[Section]:
    """The program: a function for each kind of run that there is several times, and ``step(p)``."""
    runs = [Run(list(group)) for _, group in groupby(lines, lambda line: (line[2].modules[-1:], line[2].backward))]
    used = {loss, *gradients.values(), *[operand for run in runs for operand in run.operands]}
    alike: dict[Any, list[Run]] = {}
    for run in runs:
        alike.setdefault(run.form, []).append(run)
    functions = named({form: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", form[0]).lower() + "_backward" * form[1]
                       for form, group in alike.items() if form[0] and len(group) > 1 and len(group[0].lines) > 1})
    imports = ["import numpy as np", *["from scipy import special"] * any("special." in line for line, *_ in lines)]
    found = [Section([], False, [*imports, "", ""]),
             *[fold(name, alike[form], used, writer.titles) for form, name in functions.items()],
             Section([], False, ["def step(p):"])]
    made = [value for run in runs for line, _ in run.lines for value in values_in(line) if value in run.made]
    names = named({value: writer.titles[value] for value in made}, functions.values())
    for run in runs:
        text = ["", "    # the backward"] * (run.backward and not found[-1].backward)
        text += ["", f"    # {run.title}"] * bool(run.title)
        text += [f"    {with_names(line, names)}  # {behind}" for line, behind in run.lines]
        added = [*filter(None, map(writer.homes.get, run.made)), *found[-1].modules[-1:]]
        found.append(Section(added if run.backward and not run.module else [run.module], run.backward, text))
    results = [f"        {json.dumps(name)}: {with_names(value, names)}," for name, value in gradients.items()]
    return [*found, Section([], True, [f"    return {with_names(loss, names)}, {{", *results, "    }", ""])]


def sections(function: Callable[[], Any], wrt: Module | Mapping[str, Any]) -> tuple[list[Section], dict[str, Any]]:
    """The text of `program` as sections, each with the module or function that it belongs to; and the arrays."""
    tensors: dict[str, Any] = dict(wrt.named_parameters() if isinstance(wrt, Module) else wrt)
    writer = Writer(wrt if isinstance(wrt, Module) else None)
    writer.arrays |= {name: tensor._data for name, tensor in tensors.items()}
    found: dict[int, str] = {}
    try:
        for name, tensor in tensors.items():
            writer.titles[entry(name)] = name.rpartition(".")[2]
            tensor._data = writer.trace(tensor._data, entry(name))
        with only_definitions(), watch(writer):
            loss = function()
            result = writer.of(loss._data)
            writer.titles[result] = "loss"
            with span("backward"):
                backward(loss, np.ones_like(loss._data), receive=lambda leaf, *entry: found.update(
                    {id(leaf): writer.of(arrived([*entry, leaf])[0])}))
    finally:
        for name, tensor in tensors.items():
            tensor._data = writer.arrays[name]
    reached = {name: found[id(tensor)] for name, tensor in tensors.items() if id(tensor) in found}
    writer.titles |= {value: f"d_{name.rpartition('.')[2]}" for name, value in reached.items()}
    needed, lines = {result, *reached.values()}, list[Line]()
    for line in reversed(writer.lines):
        if values_in(line[0])[0] in needed:
            lines.insert(0, line)
            needed.update(values_in(line[0]))
    return layout(writer, lines, result, reached), {
        name: array for name, array in writer.arrays.items() if name in tensors or entry(name) in needed}


def program(function: Callable[[], Any], wrt: Module | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Write the computation of a loss, and of its gradients, as a program that needs NumPy alone.

    One line is one operation; its comment has the shape. Names are those of parameters, of taps, and of the lines of
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
    found, arrays = sections(function, wrt)
    return "\n".join(line for section in found for line in section.lines), arrays
