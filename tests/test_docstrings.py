"""Every public name has a docstring that speaks of its arguments."""

import inspect
import re

import pytest

from docs.site.names import NAMESPACES, public

DESCRIBED = (*NAMESPACES, "transformer.model.attention", "transformer.model.layers")
CLEAR = {"self", "x", "xs", "input", "keepdims", "optimizer", "args", "kwargs"}  # means the same everywhere


def undescribed(value):
    """The arguments of which its docstring, and those of its bases, do not speak."""
    parts = [value] if not inspect.isclass(value) else [*value.__mro__, value.__init__]
    text = " ".join(part.__doc__ or "" for part in parts)
    try:
        parameters = set(inspect.signature(value).parameters) - CLEAR
    except ValueError:  # an exception, whose signature is Python's
        return []
    return [p for p in parameters if not re.search(rf"(?<![a-zA-Z0-9_]){p}(?![a-zA-Z0-9_])", text)]


@pytest.mark.parametrize("namespace", DESCRIBED)
def test_every_public_name_is_described(namespace):
    for name, value in public(namespace).items():
        assert (value.__doc__ or "").strip(), f"{name} has no docstring"
        is_result = namespace == "minigrad.inspect" and inspect.isclass(value) and name[0].isupper()
        if callable(value) and not is_result:  # what the functions there return is made by nobody else
            assert undescribed(value) == [], name
