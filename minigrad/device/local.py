"""Settings that are local to a thread or task: each use is a context manager and a decorator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")
SUSPENDED = inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction

_before: ContextVar[tuple[Any, ...]] = ContextVar("minigrad.before", default=())  # the values of the open blocks


class Setting(Generic[T]):
    """``with`` changes a context variable and puts the old value back; as a decorator it does so around every call."""

    def __init__(self, variable: ContextVar[T], change: Callable[[T], T]) -> None:
        self._variable, self._change = variable, change

    def __enter__(self) -> None:  # the old value is kept in the context: one object may serve several tasks at a time
        value = self._variable.get()
        _before.set((*_before.get(), value))
        self._variable.set(self._change(value))

    def __exit__(self, *exception: object) -> None:
        *outer, value = _before.get()
        _before.set(tuple(outer))
        self._variable.set(value)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a plain function; TypeError for a generator or a coroutine, whose caller would run inside, too."""
        if any(is_kind(function) for is_kind in SUSPENDED):
            raise TypeError(f"{function.__name__}: a generator or coroutine cannot be decorated with this switch; "
                            "use it inside as a context manager, around code that does not yield")

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call


class Switch:
    """A context-local boolean."""

    def __init__(self, name: str, default: bool) -> None:
        self._variable: ContextVar[bool] = ContextVar(name, default=default)
        self.get = self._variable.get

    def set_to(self, value: bool) -> Setting[bool]:
        """A context manager, and decorator, within which the switch has this value."""
        return Setting(self._variable, lambda before: value)


recording = Switch("minigrad.recording", default=True)
evaluation = Switch("minigrad.evaluation", default=False)


def no_grad() -> Setting[bool]:
    """Record nothing inside: ``with no_grad(): …``, or as a decorator. Local to the current thread or task."""
    return recording.set_to(False)


def enable_grad() -> Setting[bool]:
    """Record again inside a `no_grad` block."""
    return recording.set_to(True)


def is_grad_enabled() -> bool:
    """Whether operations are recorded here."""
    return recording.get()


def evaluating() -> Setting[bool]:
    """Every module is in evaluation inside: ``with nn.evaluating(): …``, or as a decorator.

    Local to the current thread or task: a model that others train at the same time keeps its mode.
    """
    return evaluation.set_to(True)
