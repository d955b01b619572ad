"""The public names, what a name in code means, and links from Markdown to the reference.

The reference describes an object once, under the first of its public names: its *home*. A name in code may be
shorter, ``F.softmax`` or ``nn.Linear``: any tail of a public name will do, if it is the tail of one object's names
alone. A single word must be written as only a name is (``Tensor``, ``causal_mask``): `grad` may be anything.
"""

import importlib
import inspect
import re
from collections import Counter, defaultdict
from functools import cache, cached_property
from types import FunctionType
from typing import Any

from minigrad.engine.primitive import Primitive

TENSOR = "minigrad.Tensor"  # it has so many methods that it has a page of its own; the others are of a namespace each
PAGES = (
    *("minigrad", TENSOR, "minigrad.functional", "minigrad.func", "minigrad.inspect", "minigrad.nn"),
    *("minigrad.nn.init", "minigrad.optim", "minigrad.random", "minigrad.checkpoint", "minigrad.device"),
    *("transformer", "transformer.model", "transformer.data", "transformer.decode", "transformer.training"),
    *("transformer.interop", "transformer.known"),
)
NAMESPACES = tuple(page for page in PAGES if page != TENSOR)
SHORT = {"mg": "minigrad", "F": "minigrad.functional"}
WRITTEN = (FunctionType, property, cached_property, classmethod, staticmethod, Primitive)  # as members of a class

# In Markdown: blocks of code; what stays as it is, which is headings, links and roles; code within a line.
MARKDOWN = re.compile(
    r"""(?P<block>^[ ]*(?P<fence>```+|~~~+).*?^[ ]*(?P=fence))
      | (?P<other>^[ ]*\#.*?$ | \[(?:[^][]|\[[^][]*\])*\][\[(] | <a\b.*?</a> | \{[\w:]+\}`[^`]+`)
      | (?P<ticks>`+)(?P<code>[^`].*?)(?P=ticks)(?!`)""",
    flags=re.VERBOSE | re.MULTILINE | re.DOTALL)
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*")
IMPORT = re.compile(r"^from ((?:minigrad|transformer)[\w.]*) import (.+)$", flags=re.MULTILINE)


# --- What is public ----------------------------------------------------------------------------------------


def public(namespace: str) -> dict[str, Any]:
    """The public objects of a module by name, those that are loaded on demand too; modules are left out."""
    module = importlib.import_module(namespace)
    defined = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == namespace]
    names = getattr(module, "__all__", [name for name in defined if not name.startswith("_")])
    return {name: value for name in names if not inspect.ismodule(value := getattr(module, name))}


def members(cls: type) -> dict[str, Any]:
    """The public methods and properties of a class: its own, and those of bases that no other public class has."""
    elsewhere = {base for other in cls.__mro__[1:] if other in classes() for base in other.__mro__}
    ours = [base for base in cls.__mro__ if base.__module__.partition(".")[0] in ("minigrad", "transformer")]
    found: dict[str, Any] = {}
    for base in [base for base in ours if base not in elsewhere]:
        for name, value in vars(base).items():
            if isinstance(value, WRITTEN) and not name.startswith("_"):
                found.setdefault(name, value)
    return found


@cache
def classes() -> dict[type, str]:
    """All public classes, and their homes."""
    found: dict[type, str] = {}
    for namespace in NAMESPACES:
        for name, value in public(namespace).items():
            if inspect.isclass(value):
                found.setdefault(value, f"{namespace}.{name}")
    return found


@cache
def homes() -> dict[str, str]:
    """Each public name, in full, and the name under which the reference describes the object."""
    found, first = {}, {}
    for namespace in NAMESPACES:
        found[namespace] = namespace
        for name, value in public(namespace).items():
            full = f"{namespace}.{name}"
            found[full] = first.setdefault(id(value), full) if callable(value) else full
            if found[full] == full and inspect.isclass(value):
                found |= {f"{full}.{member}": f"{full}.{member}" for member in members(value)}
    return found


@cache
def tails() -> dict[str, set[str]]:
    """The objects that a name could mean, by their homes: ``nn.Linear`` is a tail of ``minigrad.nn.Linear``."""
    found = defaultdict(set)
    for name in public("minigrad.ops").keys() - public("minigrad").keys():  # to_device is not that of minigrad.device
        found[name].add(f"minigrad.ops.{name}")
    for full, home in homes().items():
        parts = full.split(".")
        is_member = ".".join(parts[:-1]) in homes() and ".".join(parts[:-1]) not in NAMESPACES
        for start in range(len(parts) - is_member):
            found[".".join(parts[start:])].add(home)
    return found


# --- What a name means -------------------------------------------------------------------------------------


def find(name: str, near: str = "") -> str | None:
    """The home of the public object that a name in code means; None if it means none, or could mean several.

    `near` is the namespace or class in whose docstrings the name stands: there its own names come first, as words too.
    """
    name = name.removesuffix("()")
    head, dot, rest = name.partition(".")
    full = SHORT.get(head, head) + dot + rest if dot else name
    for place in (f"{near}.", f"{near.rpartition('.')[0]}.", "") if near else ("",):
        if place + full in homes():
            return homes()[place + full]
    meant = tails().get(full, set())
    return min(meant) if len(meant) == 1 and meant <= homes().keys() and re.search(r"[._A-Z]", name) else None


def link(name: str, text: str = "") -> str:
    """A link to where the reference describes the object with this public name, in full."""
    home = homes()[name]
    page = max((page for page in PAGES if f"{home}.".startswith(f"{page}.")), key=len)
    return f"[{text or f'`{name}`'}](site:reference/{page}.html{'' if home in NAMESPACES else f'#{home}'})"


def linked(markdown: str, near: str = "", leave: frozenset[str] = frozenset()) -> str:
    """Markdown in which inline code that is a public name is a link to the reference.

    `near` is that of `find`; `leave` are words that are something else here, such as the parameters of a function.
    """
    def replace(match: re.Match[str]) -> str:
        code = match["code"]
        home = find(code, near) if code and code not in leave else None
        return link(home, match[0]) if home else match[0]
    return MARKDOWN.sub(replace, markdown)


def mentions(markdown: str) -> Counter[str]:
    """How often the code of a page, in its lines and in blocks, names each public object."""
    imported = {name: f"{module}.{name}" for module, names in IMPORT.findall(markdown) for name in NAME.findall(names)}
    codes = [match["block"] or match["code"] or "" for match in MARKDOWN.finditer(markdown)]
    words = [imported.get(word, word) for code in codes for word in NAME.findall(code)]
    return Counter(home for word in words if (home := find(word)) and home not in NAMESPACES)
