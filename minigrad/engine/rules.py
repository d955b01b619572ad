"""Gradient rules: how they are declared, what each asks for, and how the backward pass calls them.

`minigrad.engine.primitive` says what a rule is, and how one is written.
"""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minigrad.device import device_of

Function = Callable[..., Any]
Source = tuple[str, int]  # what a rule asks for: a fact about a parameter, such as ("shape", 0), or a name of RESERVED
F = TypeVar("F", bound=Function)

RESERVED = frozenset({"g", "out", "needs", "saved"})
FACTS: dict[str, Function] = {  # after the name of a parameter
    "shape": np.shape, "dtype": lambda value: getattr(value, "dtype", None), "device": device_of}


class Call(NamedTuple):
    """One rule, ready to run: ``rule(*pick((g, needs, *saved)))``, or ``rule(buffer, *pick(…))`` if it `adds`."""

    rule: Function
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    adds: bool = False


# The call of a joint rule, or None; and one for each input that needs a gradient: given what the joint rule returned,
# it takes that of its input.
Calls = tuple[Call | None, tuple[Call, ...]]


class Plan(NamedTuple):
    """What recording an operation keeps for a given set of inputs that need gradients, and how its rules are called.

    Worked out once for each set and body.
    """

    needs: Any = None  # whether each input needs a gradient, by name: ``needs.weight``
    names: tuple[str, ...] = ()  # of the inputs that do
    keep: tuple[Source, ...] = ()
    calls: Calls = (None, ())  # of no input: every backward records the computation again
    of_definition: Calls = (None, ())  # for create_graph: those of the definition, none of which adds, or none at all
    fresh: bool = False  # what the calls return shares memory with nothing else


class Body:
    """A forward on arrays and its gradient rules: the definition of a primitive, or a faster body for some operands.

    ``fresh`` declares that each gradient which a rule returns is memory that nothing else refers to.
    """

    def __init__(self, primitive: Any, forward: Function, fresh: bool) -> None:
        self.primitive, self.forward, self.fresh = primitive, forward, fresh
        self.rules: dict[str, Function] = {}
        self.adding: dict[str, Function] = {}
        self.joint: Function | None = None
        self.has_saved = False
        self.plans: dict[tuple[int, ...], Plan] = {}

    def gradient(self, **rules: Function) -> None:
        """Give the rule of each input, by its name: ``mul.gradient(x=lambda g, y: g * y, …)``."""
        self.primitive.declare_inputs(list(rules))
        for name, rule in rules.items():
            self.sources(rule)
            self.rules[name] = rule
        self.plans.clear()

    def accumulating_gradient(self, **rules: Function) -> None:
        """Rules that *add into* a buffer of the input's shape: ``rule(buffer, g, …)`` returns nothing.

        Used where the gradient touches few entries of a large input (indexing). The plain rule of the same input,
        which must exist too, serves ``create_graph``.
        """
        for name, rule in rules.items():
            self.sources(rule, skip=1)
            self.adding[name] = rule
        self.plans.clear()

    def joint_gradient(self, *inputs: str) -> Callable[[F], F]:
        """Decorate the one rule that returns the gradients of all `inputs`, in this order, None where not needed.

        A joint rule works on raw arrays only if the primitive has a composition, which then serves ``create_graph``.
        """
        self.primitive.declare_inputs(inputs)

        def register(rule: F) -> F:
            self.joint, self.has_saved = rule, ("saved", -1) in self.sources(rule)
            self.plans.clear()
            if self.has_saved and self.primitive.composition is None:
                raise TypeError(f"{self.primitive.name}: a rule that uses saved values cannot be differentiated again, "
                                "but the forward can, on tensors; pass composite=True to @primitive")
            return rule

        return register

    def sources(self, rule: Function, skip: int = 0) -> list[Source]:
        """What a rule asks for, by the names of its parameters; TypeError for a name that stands for nothing."""
        parameters, found = self.primitive.parameters, []
        for name in parameter_names(rule)[skip:]:
            stem, _, fact = name.rpartition("_")
            if name in RESERVED:
                found.append((name, -1))
            elif name in parameters:
                found.append(("value", parameters.index(name)))
            elif stem in parameters and fact in FACTS:
                found.append((fact, parameters.index(stem)))
            else:
                raise TypeError(f"{self.primitive.name}: a gradient rule asks for {name!r}; it may ask for g, out, "
                                f"needs, saved, {', '.join(parameters)}, and …_shape, …_dtype or …_device of those")
        return found

    def calls(self, names: Sequence[str], keep: dict[Source, int], adding: bool) -> Calls:
        """The calls of the rules for these inputs, those that add if `adding`; what they ask for is put into `keep`."""
        if self.joint is not None:
            places = [self.primitive.inputs.index(name) for name in names]
            return (Call(self.joint, picked(self.sources(self.joint), keep)),
                    tuple([Call(lambda gradient: gradient, operator.itemgetter(slice(i, i + 1))) for i in places]))
        found = []
        for name in names:
            adds = adding and name in self.adding
            rule = self.adding[name] if adds else self.rules[name]
            found.append(Call(rule, picked(self.sources(rule, skip=adds), keep), adds))
        return None, tuple(found)

    def plan(self, needing: tuple[int, ...]) -> Plan:
        """The plan for the arguments at these positions, which need a gradient; TypeError if one has no rule."""
        primitive = self.primitive
        names, keep = tuple([primitive.parameters[i] for i in needing]), {("g", -1): 0, ("needs", -1): 1}
        for name in names:
            if name not in (primitive.inputs if self.joint else self.rules):
                raise TypeError(f"{primitive.name}: the argument {name!r} has no gradient rule, but the tensor given "
                                "for it requires a gradient; use .detach() if none is wanted")
        calls, again = self.calls(names, keep, adding=True), Plan().calls
        if primitive.joint is not None and primitive.composition is not None:  # which is called with every argument
            picked([("value", i) for i in range(len(primitive.parameters))], keep)
        else:
            again = primitive.calls(names, keep, adding=False)
        needs = types.SimpleNamespace(**{name: name in names for name in primitive.inputs})
        self.plans[needing] = Plan(needs, names, tuple(keep)[2:], calls, again, self.fresh)
        return self.plans[needing]


def picked(sources: list[Source], keep: dict[Source, int]) -> Any:
    """A function from ``(g, needs, *saved)`` to the tuple of these sources; `keep` has the place of each there."""
    places = [keep.setdefault(source, len(keep)) for source in sources]
    if len(places) > 1:
        return operator.itemgetter(*places)
    return operator.itemgetter(slice(places[0], places[0] + 1) if places else slice(0))


def parameter_names(function: Function) -> list[str]:
    """The names of a function's parameters; TypeError for one that cannot be given by position."""
    code: Any = inspect.unwrap(function).__code__  # `inspect.signature` is slow at import
    if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        raise TypeError(f"{function.__name__}{inspect.signature(function)}: a parameter cannot be given by position")
    return list(code.co_varnames[:code.co_argcount])
