"""The API reference: every public name has a docstring that speaks of its arguments, and the pages show it."""

import html
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMESPACES = (
    *("minigrad", "minigrad.functional", "minigrad.func", "minigrad.inspect", "minigrad.nn", "minigrad.nn.init"),
    *("minigrad.optim", "minigrad.random", "minigrad.checkpoint"),
    *("transformer", "transformer.decode", "transformer.training", "transformer.interop"),
)
DESCRIBED = (*NAMESPACES, "transformer.model.attention", "transformer.model.layers")
CLEAR = {"self", "x", "xs", "input", "keepdims", "optimizer", "args", "kwargs"}  # means the same everywhere


def public(namespace):
    """Every public function, operation and class of a module, by name."""
    module = importlib.import_module(namespace)
    defined = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == namespace]
    names = getattr(module, "__all__", [name for name in defined if not name.startswith("_")])
    return {name: getattr(module, name) for name in names if not inspect.ismodule(getattr(module, name))}


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


@pytest.mark.slow
def test_the_pages_show_every_public_name_and_need_no_network(tmp_path):
    pytest.importorskip("pdoc")
    done = subprocess.run([sys.executable, "-m", "docs.make_api", tmp_path], cwd=ROOT, check=True, timeout=120,
                          capture_output=True, text=True)
    assert done.stderr == ""  # where pdoc warns
    for namespace in NAMESPACES:
        page = (tmp_path / namespace.replace(".", "/")).with_suffix(".html").read_text(encoding="utf-8")
        assert set(public(namespace)) <= set(re.findall(r'<section id="([\w.]+)"', page))
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="([^"]+)"', page)
        assert [address for address in loaded if re.match(r"(\w+:)?//", address)] == []
    page = (tmp_path / "minigrad.html").read_text(encoding="utf-8")
    assert "defmaximum(x,y)" in re.sub(r"<[^>]+>|\s", "", html.unescape(page))  # an operation is shown as a function
    assert 'id="Tensor.register_hook"' in page
