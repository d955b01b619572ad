"""The API reference: a page for each public namespace, on which each public name is an object that Sphinx knows.

Signatures are those of the running code and texts are its docstrings: a page says what ``help`` says. It links to the
derivation of the gradient, to the guides and lessons that speak of the object, and to its source.
"""

import importlib
import inspect
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from minigrad.engine.primitive import Primitive

from docs.site.links import page_of
from docs.site.names import NAMESPACES, PAGES, TENSOR, classes, find, homes, link, linked, members, mentions, public
from docs.site.sources import first_sentence
from examples.lessons.story import cells

ROOT = Path(__file__).parents[2]
MOST_GUIDES = 6  # those that speak most of an object

# The groups of a page, and the modules whose names are in them, by the last part of the module's name.
GROUPS = {
    "Tensors": "tensor creation conversion",
    "Gradients and modes": "gradients local gradcheck",
    "Elementwise": "arithmetic exponential trigonometric selection bitwise",
    "Comparisons": "comparison",
    "Reductions": "reduction",
    "Running sums, sorting": "scan sorting",
    "Shapes": "shape stacking padding diagonals",
    "Linear algebra": "linalg products einsum",
    "Indexing": "indexing places one_hot",
    "Containers": "module containers parameter",
    "Layers": "layers linear embedding dropout normalization rms_norm attention",
    "Activations": "activations activation softmax gelu",
    "Losses": "losses loss linear_cross_entropy",
    "Operations of your own": "node primitive compositions",
    "Speed and precision": "precision kernels paths",
}
GROUP_OF = {module: group for group, modules in GROUPS.items() for module in modules.split()}
FEW = 16  # so many names need no groups


def write(folder: Path) -> None:
    """Write index.md and the pages into a folder."""
    folder.mkdir(parents=True)
    for name in PAGES:
        (folder / f"{name}.md").write_text(tensor_page() if name == TENSOR else namespace_page(name), encoding="utf-8")
    (folder / "index.md").write_text(index(), encoding="utf-8")


# --- Pages -------------------------------------------------------------------------------------------------


def index() -> str:
    """All names, one a line."""
    parts = ["# Reference", "Every public name of both packages. A page speaks of an object as its docstring does.",
             directive("toctree", "", "\n".join(PAGES), ":hidden:")]
    for namespace in NAMESPACES:
        parts += [f"## {link(namespace, namespace)}", summary(importlib.import_module(namespace))]
        for group, values in groups(namespace).items():
            rows = [f"| {short(f'{namespace}.{name}')} | {summary(value)} |" for name, value in values.items()]
            parts.append("\n".join((f"| {group} | |", "|---|---|", *rows)))
    return joined(parts)


def namespace_page(namespace: str) -> str:
    """What the module says of itself, and its names in groups."""
    said = importlib.import_module(namespace).__doc__
    said = re.sub(r"((?:^ {4}.*\n)+)", r"```text\n\1```\n", said, flags=re.MULTILINE)  # MyST has no indented code
    parts = [f"# {namespace}", directive("py:module", namespace), linked(said, namespace)]
    for group, values in groups(namespace).items():
        entries = {f"{namespace}.{name}": entry(f"{namespace}.{name}", value) for name, value in values.items()}
        parts += [f"## {group}", " · ".join(map(short, entries)) if len(entries) > 1 else "", *entries.values()]
    return joined(parts)


def tensor_page() -> str:
    """The class, and its methods in the groups that they have in the source."""
    cls = public("minigrad")["Tensor"]
    text = joined([described(cls, TENSOR), about(TENSOR, cls)])
    parts = [f"# {TENSOR}", directive("py:currentmodule", "minigrad"),
             directive("py:class", f"Tensor{signature(cls)}", text)]
    for heading, found in methods(cls).items():
        entries = {f"{TENSOR}.{name}": method(TENSOR, value, name, "Tensor.") for name, value in found.items()}
        parts += [f"## {heading}", " · ".join(map(short, entries)), *entries.values()]
    return joined(parts)


def joined(parts: Iterable[str]) -> str:
    """Paragraphs as one text, without those that are empty."""
    return "\n\n".join(filter(None, parts)) + "\n"


def short(name: str) -> str:
    """A link with the last part of a name."""
    return link(name, f"`{name.rpartition('.')[2]}`")


def groups(namespace: str) -> dict[str, dict[str, Any]]:
    """The names of a namespace by group: if they are many and minigrad's, by the modules that define them."""
    values = public(namespace)
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, value in values.items():
        group = {"class": "Classes", "exception": "Exceptions", "data": "Values"}.get(kind(value), "Functions")
        if len(values) > FEW and namespace.startswith("minigrad") and group != "Exceptions":
            group = GROUP_OF.get(getattr(value, "__module__", "").rpartition(".")[2], group)
        found[group][name] = value
    order = [*GROUPS, "Classes", "Functions", "Values", "Exceptions"]
    return {group: found[group] for group in order if group in found}


# --- One object --------------------------------------------------------------------------------------------


def entry(full: str, value: Any) -> str:
    """The description of a public object; elsewhere than at its home a line that says where that is."""
    namespace, _, name = full.rpartition(".")
    shown = name + ("" if kind(value) in ("data", "exception") else signature(value))
    options = ""
    if homes()[full] != full:
        text = f"The same as {link(homes()[full])}."
    elif full == TENSOR:
        return f"{link(full)}: {summary(value)}"
    elif kind(value) == "data":
        text, given = "", repr(value)
        options = f":type: {type(value).__name__}" + (f"\n:value: {given}" if len(given) < 40 else "")
    elif inspect.isclass(value):
        parts = [described(value, full), bases(value), about(full, value)]
        for heading, found in methods(value).items():
            parts += [directive("rubric", heading) if heading else "",
                      *(method(full, member, name) for name, member in found.items())]
        text = joined(parts)
    else:
        text = joined([described(value, namespace), about(full, value)])
    return directive(f"py:{kind(value)}", shown, text, options)


def methods(cls: type) -> dict[str, dict[str, Any]]:
    """The members of a class, by the headings that stand above them in its source."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    heading = ""
    for name, value in members(cls).items():
        heading = heading_above(function(value), cls).capitalize() or heading
        found[heading][name] = value
    return found


def method(full: str, value: Any, name: str, prefix: str = "") -> str:
    """The description of a method or a property of the class `full`; a Tensor's is often the operation of its name."""
    said = described(value, full)
    same = next((same for same in (name, function(value).__name__) if same in public("minigrad")), "")
    if full == TENSOR and same and (not said or public("minigrad")[same] is value):
        said = f"{link(f'minigrad.{same}')} of this tensor."
    if guides()[f"{full}.{name}"]:
        said += "\n\n" + about(f"{full}.{name}", value)
    options = ":no-contents-entry:"
    if isinstance(value, property | cached_property):
        returns = signature(value, full).partition(" -> ")[2]
        return directive("py:property", prefix + name, said, options + (f"\n:type: {returns}" if returns else ""))
    options += {classmethod: "\n:classmethod:", staticmethod: "\n:staticmethod:"}.get(type(value), "")
    return directive("py:method", prefix + name + signature(value, full), said, options)


def directive(name: str, argument: str = "", body: str = "", options: str = "") -> str:
    """A directive of MyST; its fence is longer than those in its body."""
    fence = max(re.findall("^```+", body, flags=re.MULTILINE), key=len, default="``") + "`"
    lines = (f"{fence}{{{name}}} {argument}".rstrip(), options, body and f"\n{body.rstrip()}", fence)
    return "\n".join(line for line in lines if line)


def kind(value: Any) -> str:
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isroutine(value) or isinstance(value, Primitive) else "data"


def function(value: Any) -> Any:
    """The function behind a primitive, a property, a class method or a decorator."""
    holds = {Primitive: "forward", property: "fget", cached_property: "func"}.get(type(value), "__func__")
    return inspect.unwrap(getattr(value, holds, value))


class Bare(str):
    """Text that a signature shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(value: Any, cls: str = "") -> str:
    """The signature, as written; public classes in annotations are links. `cls` is the class that has the method."""
    def annotation(written: Any) -> Any:
        if written is inspect.Parameter.empty:
            return written
        text = written if isinstance(written, str) else inspect.formatannotation(written)
        text = re.sub(r"\bT\b", cls, text) if cls else text  # `Methods` is generic in the class of its results
        return Bare(re.sub(r"[A-Za-z_][\w.]*", lambda name: f"~{home}" if (home := find(name[0])) else name[0], text))

    def default(given: Any) -> Any:
        if given is inspect.Parameter.empty:
            return given
        if hasattr(given, "__qualname__"):
            return Bare(f"{given.__module__}.{given.__qualname__}")
        return Bare("...") if repr(given).startswith("<") else given  # that of a field which is made anew each time

    found = inspect.signature(value if inspect.isclass(value) else function(value))
    parameters = [p.replace(annotation=annotation(p.annotation), default=default(p.default))
                  for p in found.parameters.values()]
    is_bound = bool(cls) and not isinstance(value, staticmethod)
    returns = found.empty if inspect.isclass(value) else annotation(found.return_annotation)
    return str(found.replace(parameters=parameters[is_bound:], return_annotation=returns))


# --- Texts -------------------------------------------------------------------------------------------------


def described(value: Any, near: str) -> str:
    """A docstring as Markdown: its sections are lists, and what it names is linked."""
    leave = frozenset() if kind(value) == "exception" else frozenset(inspect.signature(function(value)).parameters)
    text = inspect.cleandoc(function(value).__doc__ or "") + "\n"
    return linked(re.sub(r"^([A-Z]\w+):\n((?: {4}.*\n|\n)+)", section, text, flags=re.MULTILINE), near, leave).strip()


def section(match: re.Match[str]) -> str:
    """A section of a docstring, ``Args:`` and what is indented under it; in all but ``Returns:`` an item has a name."""
    title, text = match[1].replace("Args", "Parameters"), textwrap.dedent(match[2])
    if title != "Returns":
        text = re.sub(r"^(\S.*?):\s", lambda item: f"- `{item[1].replace(', ', '`, `')}`: ", text, flags=re.MULTILINE)
    return f"**{title}**\n\n{text}\n"


def summary(value: Any) -> str:
    """The first sentence of a docstring, for a cell of a table."""
    text = inspect.getdoc(value) if inspect.ismodule(value) or kind(value) != "data" else ""
    return first_sentence(text or "").replace("|", "\\|")


def bases(cls: type) -> str:
    public_bases = [link(classes()[base]) for base in cls.__mro__[1:] if base in classes()]
    return f"Has the methods of {', '.join(public_bases)} too." if public_bases else ""


def heading_above(method: Any, cls: type) -> str:
    """The last of the comments ``# ----- heading`` above a method in the class that defines it; empty if none is."""
    owner = next((base for base in cls.__mro__ if method.__qualname__ == f"{base.__name__}.{method.__name__}"), None)
    lines, start = source_lines(owner) if owner else ([], 0)
    headings = re.findall(r"^ +# -{9,} (.+)$", "".join(lines[:inspect.getsourcelines(method)[1] - start]), re.MULTILINE)
    return headings[-1] if headings else ""


source_lines = cache(inspect.getsourcelines)


# --- Where else it is spoken of ----------------------------------------------------------------------------


def about(full: str, value: Any) -> str:
    """A line on the gradient, its derivation, the guides, and the source."""
    path = Path(inspect.getfile(function(value))).relative_to(ROOT).as_posix()
    derived = derivations()[path, function(value).__name__]
    parts = []
    if isinstance(value, Primitive):
        rules = " and ".join(f"`{name}`" for name in value.inputs)
        parts.append(f"Gradient rule for {rules}" if rules else "No gradient")
    if derived:
        parts.append(f"Derivation: {', '.join(f'[{title}]({place})' for place, title in derived.items())}")
    if others := [page for page in guides()[full] if not any(section.startswith(page[0]) for section in derived)]:
        parts.append(f"Guides: {', '.join(f'[{title}]({place})' for place, title in others[:MOST_GUIDES])}")
    parts.append(f"[Source](site:source/{path}.html#L-{inspect.getsourcelines(function(value))[1]})")
    return directive("rst-class", "about") + "\n\n" + " · ".join(parts)


@cache
def derivations() -> dict[tuple[str, str], dict[str, str]]:
    """The sections of docs/gradients that derive a function, (file, name): {address: heading}."""
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for page in sorted((ROOT / "docs/gradients").glob("*.md")):
        for section in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            heading, path = section.partition("\n")[0], ""
            anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for name in re.findall(r"`([^`]+)`", section.partition("**In the source:**")[2].partition("\n\n")[0]):
                path = name if "/" in name else path
                found[path, name][f"site:gradients/{page.stem}.html#{anchor}"] = heading
    return found


@cache
def guides() -> dict[str, list[tuple[str, str]]]:
    """The pages that name an object in code, as (address, title); those that do so most often come first."""
    found: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    patterns = "docs/*.md", "docs/gradients/*.md", "examples/lessons/[0-9]*.py"
    files = {file for pattern in patterns for file in ROOT.glob(pattern)} - {ROOT / "docs/index.md"}  # a list of guides
    for file in sorted(files):
        if file.suffix == ".py":
            text = "\n".join(f"```\n{cell}```" if kind == "code" else cell for kind, _, cell in cells(file))
        else:
            text = file.read_text(encoding="utf-8")
        page = f"site:{page_of(file.relative_to(ROOT).as_posix())}.html", re.search(r"^# (.+)$", text, re.MULTILINE)[1]
        for home, times in mentions(text).items():
            found[home][page] += times
    return defaultdict(list, {home: [page for page, _ in pages.most_common()] for home, pages in found.items()})
