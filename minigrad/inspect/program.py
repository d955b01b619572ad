"""A computation and its gradients as a program of NumPy alone: `program` writes each operation as a line.

The forward and the backward run as ever, by definitions, on arrays that write down what NumPy is asked to do with them.
What depends on no parameter (ids, masks, a dropout mask) is a constant of the program, which is right for these inputs.

While lines are written, ⟨7⟩ stands in them for a value that a line makes, whose name is found in the end. ⟨p["bias"]⟩
is one that no line makes, and ⟨(2, 3) 8⟩ a shape: in a function that several runs share, they are arguments.
"""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partialmethod
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from minigrad.engine.node import Node
from minigrad.engine.primitive import Primitive, only_definitions
from minigrad.engine.watch import span, watch
from minigrad.func.trees import tree_map
from minigrad.inspect.frames import Frame, FrameWatcher, arrays_in
from minigrad.inspect.lines import current_lines
from minigrad.nn import Module
from minigrad.tensor.gradients import arrived, backward

SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "matmul": "@", "power": "**", "greater": ">",
           "greater_equal": ">=", "less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!="}


class Traced(np.ndarray[Any, Any]):
    """An array that writes down what NumPy is asked to do with it."""

    traced: str
    writer: Writer

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        given, out = {**options}, options.pop("out", ())
        name, write = f"{ufunc.__name__}.{method}".removesuffix(".__call__"), self.writer
        text = f"{'np' if hasattr(np, ufunc.__name__) else 'special'}.{name}({write.shown(*args, **options)})"
        if name in SYMBOLS and not options:
            text = f" {SYMBOLS[name]} ".join(map(write.one, args))
        changed = args[0] if method == "at" else None
        if out and out[0].ndim:  # x -= y; a number is no array in the program: there x = x - y
            changed, text = out[0], f"{write.one(out[0])}[...] = {text}"
        return write.run(text, getattr(ufunc, method), args, changed, **given)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        text = f"np.{function.__name__}({self.writer.shown(*args, **options)})"
        return self.writer.run(text, function, args, **options)

    def __getitem__(self, index: Any) -> Any:
        return self.writer.run(self._entry(index), operator.getitem, (self, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        text = f"{self._entry(index)} = {self.writer.one(value)}"
        self.writer.run(text, operator.setitem, (self, index, value), self)

    def _entry(self, index: Any) -> str:
        parts = [f"{part.start}:{part.stop}:{part.step}".replace("None", "").removesuffix(":")
                 if isinstance(part, slice) else self.writer.one(part)
                 for part in (index if isinstance(index, tuple) else (index,))]
        return f"{self.traced}[{', '.join(parts) or '()'}]"

    @property
    def mT(self) -> Any:
        """With the last two axes exchanged."""
        return self.writer.run(f"{self.traced}.mT", np.matrix_transpose, (self,))

    def _method(self, method: Any, *args: Any, **options: Any) -> Any:
        given = {key: value for key, value in options.items() if value is not None and value is not False}
        text = f"{self.traced}.{method.__name__}({self.writer.shown(*args, **given)})"
        return self.writer.run(text, method, (self, *args), **given)


for _name, _of_array in vars(np.ndarray).items():
    if callable(_of_array) and not _name.startswith("_"):
        setattr(Traced, _name, partialmethod(Traced._method, _of_array))


class Line(NamedTuple):
    """A line of the program: its text, what the comment behind it says, and the frame in which it runs."""

    text: str
    behind: Any
    frame: Frame


class Writer(FrameWatcher):
    """Writes the lines.

    Attributes:
        lines: in the order in which they ran.
        arrays: the entries of p, parameters and constants, by name.
        titles: what values should be called; "" if nobody said. Shapes have none.
        homes: of gradients, the path of the module that made the value.
        latest: the value that the operation has made last.
    """

    buffers = False  # what is added into them in place would not be seen

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.lines, self.arrays, self.latest = list[Line](), dict[str, Any](), ""
        self.titles, self.homes = dict[str, str](), dict[str, str]()

    def trace(self, array: Any, value: str, title: str) -> Any:
        """`array` as one that writes down what is done with it."""
        traced: Any = np.asarray(array).view(Traced)
        traced.writer, traced.traced, self.titles[value] = self, value, title
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
            return f"⟨{arg} {len(self.lines)}⟩"
        if isinstance(arg, (tuple, list)):
            return f"[{self.shown(*arg)}]" if isinstance(arg, list) else f"({self.shown(*arg)},)"
        if isinstance(arg, (np.dtype, type)):
            return f"np.{np.dtype(arg)}"
        text = repr(arg[()] if isinstance(arg, np.ndarray) else arg).replace("Ellipsis", "...")
        return re.sub(r"\b(inf|nan)\b", r"np.\1", text)

    def run(self, text: str, function: Any, args: Any, changed: Any = None, /, **options: Any) -> Any:
        """Write a line for a call of NumPy; return its result, or the array that it has `changed` in place, traced."""
        bare: Any = tree_map(lambda one: np.asarray(one) if isinstance(one, Traced) else one, (args, options))
        made, frame = function(*bare[0], **bare[1]), self.running.frame
        if changed is not None:
            self.writes(changed, (), args)
        else:
            if not isinstance(made, (np.ndarray, np.generic)):
                return made
            title = source_name(frame.backward)
            if title == self.titles.get(self.latest):  # of values with one name, the last has it
                self.titles[self.latest] = ""
            self.latest = f"⟨{len(self.lines)}⟩"
            changed, text = self.trace(made, self.latest, title), f"{self.latest} = {text}"
        self.lines.append(Line(text, changed.shape, frame))
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
        frame, self.latest = self.enter(what), ""
        frame.note = type(what).__name__
        if isinstance(what, Node):
            gradient = self.of(*arrays_in(given))
            self.titles[gradient] = f"d_{self.titles[self.recorded[what].note]}"
            self.homes.setdefault(gradient, frame.module)
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


NAMED = re.compile(r'(?:(?:return|\w+ =) tap\(")?(\w+)(?:"| [-+*/@]?= )')


def source_name(backward: bool) -> str:
    """The name that the running line of minigrad.functional, or in the forward of the program, taps or assigns to.

    What a function of minigrad.functional returns has the name that its caller gives it.
    """
    for line in reversed(current_lines()[backward:]):  # in the backward the first is that of the program
        text = str(line.line)
        found = NAMED.match(text)
        if found or not text.startswith("return "):
            return found[1] if found else ""
    return ""


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


def entry(name: str) -> str:
    """The value of an entry of p."""
    return f"⟨p[{json.dumps(name)}]⟩"


def values_in(text: str) -> list[str]:
    """The values in lines; of one line, the first is that which it makes or changes."""
    return re.findall("⟨.*?⟩", text)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Lines with these names; values that have none there are written as they are."""
    return re.sub("⟨(.*?)( [0-9]+)?⟩", lambda found: names.get(found[0], found[1]), text)


def named(titles: Mapping[Any, str], taken: Iterable[str] = ()) -> dict[Any, str]:
    """A name for each key, like its title, none of them twice and none that is `taken`."""
    names, used = dict[Any, str](), {"np", "special", "step", "p", *taken}
    for key, title in titles.items():
        base = name = re.sub(r"\W", "_", title) or "t"
        number = 1
        while name in used:
            number += 1
            name = f"{base}_{number}"
        used.add(name)
        names[key] = name
    return names


class Run:
    """Lines that ran one after the other in one call of a module, by its forward or by its rules.

    Attributes:
        made: the values that the lines make; of a call, those that it returns.
        values: all of them, each once, those that the lines make behind the others.
        form: what it has in common with runs that compute the same of other values: the class of the module, "" outside
            of modules, whether it is a part of the backward, and the lines.
    """

    def __init__(self, lines: list[Line]) -> None:
        self.lines, self.frame, text = lines, lines[0].frame, "\n".join(line.text for line in lines)
        self.made = re.findall("^(⟨[0-9]+⟩) =", text, re.MULTILINE)
        self.values = sorted(dict.fromkeys(values_in(text)), key=self.made.__contains__)
        kind = self.frame.modules[-1].note if self.frame.modules else ""
        self.form = kind, self.frame.backward, with_names(text, {value: f"v{i}" for i, value in enumerate(self.values)})
        self.title = f"{self.frame.module} ({kind})"


def fold(name: str, group: list[Run], runs_with: Mapping[str, int], titles: Mapping[str, str]) -> Section:
    """One function for the equal runs of `group`, which become calls of it."""
    first = group[0]
    columns = [tuple(re.sub(" [0-9]+⟩", "⟩", value) for value in column)
               for column in zip(*[run.values for run in group], strict=True)]
    # A shape that is the same in all runs stands in the lines; shapes that are equal in each run have one name.
    names = named({column: titles.get(column[0], "shape") for column in columns
                   if len(set(column)) > 1 or column[0] in titles})
    own = {value: names[column] for value, column in zip(first.values, columns, strict=True) if column in names}
    asked = [column for column in names if column[0] not in first.made]
    given = [column for column in names
             if column[0] in first.made and any(runs_with[value] > 1 for value in column)]
    text = [f"def {name}({', '.join(names[column] for column in asked)}):",
            *[f"    {with_names(line.text, own)}" for line in first.lines],
            f"    return {', '.join(names[column] for column in given)}", "", ""]
    for i, run in enumerate(group):
        run.made = [column[i] for column in given]
        call = f"{', '.join(run.made) or '_'} = {name}({', '.join(column[i] for column in asked)})"
        run.lines = [Line(call, run.title, run.frame)]
    return Section([run.frame.module for run in group], first.frame.backward, text)


def layout(writer: Writer, lines: list[Line], loss: str, gradients: Mapping[str, str]) -> list[Section]:
    """The program: a function for each kind of run that there is several times, and ``step(p)``."""
    runs = [Run(list(group)) for _, group in groupby(
        lines, lambda line: (line.frame.modules[-1:], line.frame.backward))]
    # The number of runs in which a value occurs, since each run has its values once, and one more for a result. A value
    # that a function makes is returned if others need it, too: if the number is above 1.
    runs_with = Counter([loss, *gradients.values(), *[value for run in runs for value in run.values]])
    functions = named({form: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", form[0]).lower() + "_backward" * form[1]
                       for form, times in Counter(run.form for run in runs).items()
                       if form[0] and times > 1 and "\n" in form[2]})
    imports = ["import numpy as np", *["from scipy import special"] * any("special." in line.text for line in lines)]
    found = [Section([], False, [*imports, "", ""]),
             *[fold(name, [run for run in runs if run.form == form], runs_with, writer.titles)
               for form, name in functions.items()],
             Section([], False, ["def step(p):"])]
    names = named({value: writer.titles[value] for run in runs for value in run.made}, functions.values())
    for run in runs:
        module, backward = run.frame.module, run.frame.backward
        text = ["", "    # the backward"] * (backward and not found[-1].backward)
        text += ["", f"    # {run.title}"] * (run.form[0] != "" and run.form not in functions)
        text += [f"    {with_names(line.text, names)}  # {line.behind}" for line in run.lines]
        added = [*filter(None, map(writer.homes.get, run.made)), *found[-1].modules[-1:]]
        found.append(Section(added if backward and not module else [module], backward, text))
    results = [f"        {json.dumps(name)}: {with_names(value, names)}," for name, value in gradients.items()]
    return [*found, Section([], True, [f"    return {with_names(loss, names)}, {{", *results, "    }", ""])]


def sections(function: Callable[[], Any], wrt: Module | Mapping[str, Any]) -> tuple[list[Section], dict[str, Any]]:
    """The text of `program` as sections, each with the module or function that it belongs to; and the arrays."""
    tensors: dict[str, Any] = dict(wrt.named_parameters() if isinstance(wrt, Module) else wrt)
    writer, found = Writer(wrt if isinstance(wrt, Module) else None), dict[int, str]()
    writer.arrays |= {name: tensor._data for name, tensor in tensors.items()}
    try:
        for name, tensor in tensors.items():
            tensor._data = writer.trace(tensor._data, entry(name), name.rpartition(".")[2])
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
    gradients = {name: found[id(tensor)] for name, tensor in tensors.items() if id(tensor) in found}
    writer.titles |= {value: f"d_{name.rpartition('.')[2]}" for name, value in gradients.items()}
    needed, lines = {result, *gradients.values()}, list[Line]()
    for line in reversed(writer.lines):
        if values_in(line.text)[0] in needed:
            lines.insert(0, line)
            needed.update(values_in(line.text))
    return layout(writer, lines, result, gradients), {
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
