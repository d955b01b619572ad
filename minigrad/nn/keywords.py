"""Keyword arguments of PyTorch's modules: an error that says what they are called here, before Python's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Self

from minigrad.namespace import Answers


def refuse_foreign(name: str, function: Callable[..., Any], keywords: Iterable[str]) -> None:
    """TypeError for keyword arguments that a `function` of ours, called `name`, lacks and that PyTorch's has.

    Others are left to Python, as is a function that takes any keyword, and one that is not ours.
    """
    code, package = getattr(function, "__code__", None), str(getattr(function, "__module__", "")).partition(".")[0]
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS or package not in ("minigrad", "transformer"):
        return
    parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    lacking = [keyword for keyword in keywords if keyword not in parameters]
    told = Answers.arguments(lacking, parameters)
    if told is not None:
        several = "s" if len(lacking) > 1 else ""
        raise TypeError(f"{name}: unexpected keyword argument{several} {', '.join(map(repr, lacking))}; {told}")


class KeywordCheck:
    """Base of `Module`: an argument of PyTorch's is refused in words before ``__init__`` runs.

    It is a class of its own so that `inspect` gives a module the signature of its ``__init__``.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An instance of this class; TypeError for an argument of PyTorch's that ``__init__`` lacks."""
        refuse_foreign(cls.__name__, cls.__init__, kwargs)
        return super().__new__(cls)
