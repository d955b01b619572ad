"""Settings that are local to a thread or task: each use is a context manager and a decorator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_before: ContextVar[tuple[Any, ...]] = ContextVar("minigrad.before", default=())  # the values of the open blocks


class Setting(Generic[T]):
    """``with`` changes a context variable and puts the old value back; as a decorator it does so around every call.

    Functions, generator functions and coroutine functions can be decorated.
    """

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
        """Decorate `function`; TypeError for an asynchronous generator function."""
        if inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__name__}: an asynchronous generator cannot be decorated with this switch; "
                            "use it inside as a context manager, around code that does not yield")
        if inspect.iscoroutinefunction(function):  # may be suspended inside: each task has a context of its own

            @functools.wraps(function)
            async def run(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return run
        if not inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

            return call

        # A generator is entered and left at every step: its caller must never run under our setting.
        @functools.wraps(function)
        def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            generator = function(*args, **kwargs)
            resume, argument = generator.send, None
            while True:
                with self:
                    try:
                        item = resume(argument)
                    except StopIteration as stop:
                        return stop.value
                try:
                    resume, argument = generator.send, (yield item)
                except GeneratorExit:
                    with self:
                        generator.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - thrown in by the caller: the generator's to handle
                    resume, argument = generator.throw, error

        return generate


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
