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
    *("minigrad.optim", "minigrad.random", "minigrad.checkpoint", "transformer"),
    *("transformer.model.attention", "transformer.model.layers", "transformer.interop"),
)
CLEAR = {"self", "x", "xs", "input", "keepdims", "optimizer", "args", "kwargs"}  # means the same everywhere


def public():
    """(namespace, name, value) of every public function, operation and class."""
    for namespace in NAMESPACES:
        module = importlib.import_module(namespace)
        defined = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == namespace]
        for name in getattr(module, "__all__", [name for name in defined if not name.startswith("_")]):
            value = getattr(module, name)
            if not inspect.ismodule(value):
                yield namespace, name, value


PUBLIC = list(public())
each = pytest.mark.parametrize(("namespace", "name", "value"), PUBLIC, ids=[f"{n}.{name}" for n, name, _ in PUBLIC])


def test_public_names_are_found():
    assert len(PUBLIC) > 120


@each
def test_every_public_name_is_described(namespace, name, value):
    assert (value.__doc__ or "").strip(), "no docstring"
    is_result = namespace == "minigrad.inspect" and inspect.isclass(value) and name[0].isupper()
    if not callable(value) or is_result:  # what the functions there return is made by nobody else
        return
    parts = [value] if not inspect.isclass(value) else [*value.__mro__, value.__init__]
    text = " ".join(part.__doc__ or "" for part in parts)  # a subclass need not repeat what its base says
    try:
        parameters = set(inspect.signature(value).parameters) - CLEAR
    except ValueError:  # an exception, whose signature is Python's
        return
    missing = [p for p in parameters if not re.search(rf"(?<![a-zA-Z0-9_]){p}(?![a-zA-Z0-9_])", text)]
    assert missing == [], "the docstring does not speak of these arguments"


# --- The pages ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The folder of the reference, freshly made."""
    if importlib.util.find_spec("pdoc") is None:
        pytest.skip("pdoc is not installed: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("api")
    command = [sys.executable, "-m", "docs.make_api", folder]
    made = subprocess.run(command, cwd=ROOT, check=True, timeout=120, capture_output=True, text=True)
    assert made.stderr == ""  # where pdoc warns
    return folder


def test_no_docstring_refers_to_what_the_pages_do_not_show():
    """The text of a module that only its source has."""
    for namespace, name, value in PUBLIC:
        assert "module's text" not in (value.__doc__ or ""), f"{namespace}.{name}"


def words(text):
    """The letters and digits of a text alone: how a page sets it does not matter."""
    return re.sub(r"[\W_]+", "", text)


def shown(page):
    """Name -> the text of its section in a page."""
    found = {}
    for section in re.split(r'<section id="', page.read_text(encoding="utf-8"))[1:]:
        name, _, body = section.partition('"')
        found[name] = html.unescape(re.sub(r"<[^>]+>", "", body))
    return found


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_page_shows_every_public_name_with_its_docstring(pages, namespace):
    sections = shown((pages / namespace.replace(".", "/")).with_suffix(".html"))
    wanted = [(name, value) for space, name, value in PUBLIC if space == namespace]
    assert [name for name, _ in wanted if name not in sections] == []
    for name, value in wanted:
        if not callable(value):
            continue  # a constant, whose text stands beside it in the source
        first = inspect.cleandoc(value.__doc__).splitlines()[0]
        assert words(first) in words(sections[name]), name


def test_operations_are_shown_as_functions_and_methods_with_their_tensor(pages):
    text = html.unescape(re.sub(r"<[^>]+>", "", (pages / "minigrad.html").read_text(encoding="utf-8")))
    assert "defmaximum(x,y)" in re.sub(r"\s", "", text)
    assert "A primitive, with a gradient rule for x and y." in text
    page = (pages / "minigrad.html").read_text(encoding="utf-8")
    for method in ("reshape", "backward", "exp", "register_hook"):
        assert f'id="Tensor.{method}"' in page


def test_the_pages_need_no_network(pages):
    for page in pages.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="([^"]+)"', page.read_text(encoding="utf-8"))
        assert [address for address in loaded if re.match(r"(\w+:)?//", address)] == []
