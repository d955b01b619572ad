"""Switches that are local to a thread or task: whether operations are recorded, whether fused ones run fused, and
whether hot functions run compiled."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Switch:
    """A context-local boolean; each use is a context manager and a decorator, of generator functions too."""

    def __init__(self, name: str, default: bool) -> None:
        self._variable: ContextVar[bool] = ContextVar(name, default=default)
        self._previous: ContextVar[tuple[bool, ...]] = ContextVar(f"{name}.previous", default=())
        self.get = self._variable.get

    def set_to(self, value: bool) -> SwitchContext:
        """A context manager, and decorator, within which the switch has this value."""
        return SwitchContext(self._variable, self._previous, value)


class SwitchContext:
    """``with`` sets the switch and puts the old value back; as a decorator it does so around every call.

    Functions, generator functions and coroutine functions can be decorated.
    """

    def __init__(self, variable: ContextVar[bool], previous: ContextVar[tuple[bool, ...]], value: bool) -> None:
        self._variable, self._previous, self._value = variable, previous, value

    def __enter__(self) -> None:  # what was before is kept in the context: one object may serve several tasks at a time
        self._previous.set((*self._previous.get(), self._variable.get()))
        self._variable.set(self._value)

    def __exit__(self, *exception: object) -> None:
        *before, last = self._previous.get()
        self._previous.set(tuple(before))
        self._variable.set(last)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `function`; TypeError for an asynchronous generator function."""
        if inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__name__}: an asynchronous generator cannot be decorated with this switch; "
                            "use it inside as a context manager, around code that does not yield")
        if inspect.iscoroutinefunction(function):  # may be suspended inside: each task has a context of its own

            @functools.wraps(function)
            async def run(*args: Any, **kwargs: Any) -> Any:
                with SwitchContext(self._variable, self._previous, self._value):
                    return await function(*args, **kwargs)

            return run
        if not inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                with SwitchContext(self._variable, self._previous, self._value):
                    return function(*args, **kwargs)

            return call

        # A generator is entered and left at every step: its caller must never run under our switch.
        @functools.wraps(function)
        def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            generator = function(*args, **kwargs)
            resume, argument = generator.send, None
            while True:
                with SwitchContext(self._variable, self._previous, self._value):
                    try:
                        item = resume(argument)
                    except StopIteration as stop:
                        return stop.value
                try:
                    resume, argument = generator.send, (yield item)
                except GeneratorExit:
                    with SwitchContext(self._variable, self._previous, self._value):
                        generator.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - thrown in by the caller: the generator's to handle
                    resume, argument = generator.throw, error

        return generate


recording = Switch("minigrad.recording", default=True)
fused_kernels = Switch("minigrad.fused", default=True)
compiled_kernels = Switch("minigrad.jit", default=False)


def no_grad() -> SwitchContext:
    """Record nothing inside: ``with no_grad(): …``, or as a decorator. Local to the current thread or task."""
    return recording.set_to(False)


def enable_grad() -> SwitchContext:
    """Record again inside a `no_grad` block."""
    return recording.set_to(True)


def is_grad_enabled() -> bool:
    """Whether operations are recorded here."""
    return recording.get()


def fused(enabled: bool) -> SwitchContext:
    """``with fused(False):`` runs every fused function as its readable composition; `enabled` switches back.

    Local to the thread or task.
    """
    return fused_kernels.set_to(enabled)


def compilable(function: F) -> F:
    """Decorate a function that is no primitive, so that `minigrad.kernels` can give it a compiled twin.

    The twin, its attribute ``twin``, is called in its place where `compiled_kernels` is on. It returns NotImplemented
    for arguments that it is not made for, and then the function itself runs.
    """

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if compiled_kernels.get() and call.twin is not None:  # type: ignore[attr-defined]
            result = call.twin(*args)  # type: ignore[attr-defined]
            if result is not NotImplemented:
                return result
        return function(*args)

    call.twin = None  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]
