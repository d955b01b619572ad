"""The reference: every public name is an object on its page, as the code has it, with links that lead somewhere."""

import inspect
import re
from collections import Counter
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

from docs.site.names import NAMESPACES, WRITTEN, find, homes, linked, members, mentions
from docs.site.reference import described, function, write
from tests.test_docs import anchors

ROOT = Path(__file__).parents[2]
OBJECT = re.compile(r"^(`{3,})\{py:(\w+)\} (\w[\w.]*)(.*)$", flags=re.MULTILINE)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "reference"
    write(folder)
    return {page.stem: page.read_text(encoding="utf-8") for page in folder.iterdir()}


@pytest.fixture(scope="module")
def objects(pages):
    """The full name of each object that the pages describe: (its kind, what follows its name)."""
    found = {}
    for page in pages.values():
        module = cls = ""
        for _, kind, name, rest in OBJECT.findall(page):
            if kind in ("module", "currentmodule"):
                module = name
                continue
            is_nested = kind in ("method", "property") and "." not in name
            full = f"{cls if is_nested else module}.{name}"
            cls = full if kind in ("class", "exception") else cls
            assert full not in found, "described twice"
            found[full] = kind, rest
    return found


def of_name(full):
    """The object of a public name; of a property and the like, what the class has in its body."""
    namespace = max((space for space in NAMESPACES if full.startswith(f"{space}.")), key=len)
    path = full.removeprefix(f"{namespace}.").split(".")
    return reduce(lambda owner, name: members(owner)[name] if inspect.isclass(owner) else getattr(owner, name), path,
                  import_module(namespace))


def test_every_public_name_is_an_object_of_the_reference(objects):
    assert set(objects) == homes().keys() - set(NAMESPACES)


@pytest.mark.parametrize(("name", "kind", "signature"), [
    ("minigrad.maximum", "function", "(x, y)"),  # a primitive
    ("minigrad.functional.softmax", "function", "(x, axis=-1)"),
    ("minigrad.zeros", "function", "(shape: Any, dtype: Any = numpy.float32, device: str = 'cpu', "),
    ("minigrad.from_dlpack", "function", "(source: Any) -> ~minigrad.Tensor"),
    ("minigrad.Tensor.register_hook", "method", "("),
    ("minigrad.Tensor.sum", "method", "(axis=None, keepdims=False)"),  # a primitive in a class
    ("minigrad.Tensor.clip", "method", "(min: Any = None, max: Any = None) -> ~minigrad.Tensor"),
    ("minigrad.Tensor.device", "property", ""),
    ("minigrad.nn.Linear", "class", "(in_features: int, out_features: int, bias: bool = True"),
    ("minigrad.DeviceError", "exception", ""),
    ("minigrad.nn.Module.training", "property", ""),
    ("transformer.trace", "function", "(model: ~minigrad.nn.Module) -> "),  # its module is loaded on demand
    ("transformer.TransformerConfig.from_json", "method", "(values: dict[str, Any]) -> "),  # a class method
    ("transformer.data.PAD", "data", ""),
])
def test_an_object_has_the_signature_of_its_source(objects, name, kind, signature):
    assert objects[name][0] == kind
    assert objects[name][1].startswith(signature)


def test_no_word_of_a_docstring_is_lost(pages):
    """An item of a section that is indented wrongly, or a section that is written in another way, would be."""
    def words(text):
        return Counter(re.findall(r"\w+", re.sub(r"\]\(site:[^)]*\)", "]", text)))

    for full in {home for home in homes().values() if home not in NAMESPACES}:
        value = of_name(full)
        if callable(value) or isinstance(value, WRITTEN):
            written = re.sub(r"^( *)Args:$", r"\1Parameters:", function(value).__doc__ or "", flags=re.MULTILINE)
            assert words(described(value, "minigrad")) == words(written), full


def test_every_link_leads_to_a_line_a_section_or_a_page(pages, objects):
    """Only those into the site's other parts; Sphinx's own are checked with the site."""
    places = set(re.findall(r"\]\(site:([^)#]+)\.html#?([^)]*)\)", "".join(pages.values())))
    for path, anchor in places:
        if path.startswith("reference/"):
            assert not anchor or anchor in objects
        elif path.startswith("source/"):
            line = (ROOT / path.removeprefix("source/")).read_text().splitlines()[int(anchor.removeprefix("L-")) - 1]
            assert re.match(r" *(@|def |class |async def )", line), f"{path}:{anchor}: {line}"
        elif path.startswith("lessons/"):
            assert (ROOT / "examples" / f"{path}.py").exists()
        else:
            page = ROOT / "docs" / f"{path}.md"
            assert page.exists()
            assert not anchor or anchor in anchors(page)
    assert {path.partition("/")[0] for path, _ in places} >= {"reference", "source", "lessons", "gradients"}


def test_an_entry_leads_to_its_derivation_and_its_guides(pages):
    entry = pages["minigrad.functional"].partition("{py:function} softmax")[2].partition("{py:function}")[0]
    assert "(site:gradients/softmax.html#softmax-and-log-softmax)" in entry
    assert "(site:lessons/02_softmax.html)" in entry
    assert "Gradient rule for `x`" in entry
    entry = pages["minigrad"].partition("{py:function} argmax")[2].partition("{py:function}")[0]
    assert "No gradient" in entry


# --- Names in guides ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "home"), [
    ("minigrad.softmax", None),  # there is none: it is in functional
    ("F.softmax", "minigrad.functional.softmax"),
    ("F.relu", "minigrad.relu"),  # described once
    ("mg.grad", "minigrad.grad"),
    ("func.grad", "minigrad.func.grad"),
    ("Tensor.backward", "minigrad.Tensor.backward"),
    ("nn.Linear", "minigrad.nn.Linear"),
    ("detect_anomaly()", "minigrad.inspect.detect_anomaly"),
    ("transformer.model", "transformer.model"),
    ("Tensor", "minigrad.Tensor"),
    ("grad", None),  # of minigrad and of minigrad.func
    ("trace", None),
    ("linear", None),  # one object alone, and a word
    ("T", None),  # Tensor.T, but more often the length of a sequence
    ("to_device", None),  # of minigrad.device, and an operation
    ("model.loss", None),
    ("torch.nn.Linear", None),
])
def test_a_name_in_a_guide_means_one_object_or_none(code, home):
    assert find(code) == home


def test_names_become_links_in_prose_alone():
    prose = "Call `F.softmax`, not ``grad``.\n"
    others = ("# The class `nn.Linear`\n", "[see `nn.Linear`](own_models.md)\n", "![`nn.Linear`](a.png)\n",
              "```python\n# `nn.Linear`\n```\n", "  ~~~\n  `nn.Linear`\n  ~~~\n", "`` `nn.Linear` ``\n",
              "{py:class}`nn.Linear`\n", '<a href="x">`nn.Linear`</a>\n')
    link = "[`F.softmax`](site:reference/minigrad.functional.html#minigrad.functional.softmax)"
    for other in others:
        assert linked(prose + other + prose) == prose.replace("`F.softmax`", link) + other + prose.replace(
            "`F.softmax`", link)


def test_in_a_docstring_the_names_beside_it_come_first_and_its_parameters_are_none():
    text = "`backward` of `grad`"
    assert linked(text, "minigrad.Tensor", frozenset({"grad"})) \
        == "[`backward`](site:reference/minigrad.Tensor.html#minigrad.Tensor.backward) of `grad`"


def test_a_page_speaks_of_what_its_code_imports_and_calls():
    code = "from transformer import trace\n\nwith trace(model): F.gelu(x)"
    page = f"Prose on Linear and `mg.no_grad()`.\n```python\n{code}\n```\n"
    assert mentions(page) == {"minigrad.no_grad": 1, "transformer.trace": 2, "minigrad.functional.gelu": 1}
