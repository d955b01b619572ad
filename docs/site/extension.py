"""What this site adds to Sphinx: MathML, links to source files, and functions for primitives in the reference."""

import inspect
import posixpath
import re
import textwrap
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from math_core import LatexToMathML
from sphinx import addnodes
from sphinx.application import Sphinx

from minigrad.engine.primitive import Primitive

from docs.site import sources
from docs.site.names import NAMESPACES, public

ROOT = Path(__file__).parents[2]
LATEX = LatexToMathML()


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    app.connect("builder-inited", show_primitives_as_functions)
    app.connect("autodoc-process-docstring", fences_are_blocks)
    app.connect("doctree-read", link_to_repository)
    app.connect("html-collect-pages", pages_of_sources)
    app.connect("html-page-context", name_the_language)
    return {"parallel_read_safe": False}  # `LINKED` is of this process


# --- Mathematics and language ------------------------------------------------------------------------------


def visit_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(LATEX.convert_with_local_state(node.astext(), displaystyle=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    mathml = LATEX.convert_with_local_state(node.astext(), displaystyle=True)
    writer.body.append(f'<div class="formula">{mathml}</div>\n')
    raise nodes.SkipNode


def name_the_language(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    context["language"] = "ja" if re.search(r"(/|\.)ja\b", page) else "en"


# --- Links to files of the repository ----------------------------------------------------------------------

LINKED: set[PurePosixPath] = set()  # the files and folders that pages lead to


def link_to_repository(app: Sphinx, doctree: nodes.document) -> None:
    """A script that is a lesson leads to its page, another file or folder to the page of its source.

    What is neither stays: MyST warns of it.
    """
    here = posixpath.dirname(app.env.docname)
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link["reftype"] != "myst" or link["refdomain"]:
            continue
        target, _, anchor = link["reftarget"].partition("#")
        file = PurePosixPath(posixpath.normpath(posixpath.join(here, target)))
        if (page := str(file.with_suffix(""))) in app.env.found_docs:
            link.attributes |= {"refdomain": "doc", "reftarget": page, "reftargetid": anchor or None}
        elif target and ".." not in file.parts and (ROOT / file).exists():
            LINKED.add(file)
            address = f"source/{file}{'/index' if (ROOT / file).is_dir() else ''}.html"
            link.replace_self(nodes.reference("", "", *link.children, internal=True,
                                              refuri=posixpath.relpath(address, here or ".")))


def pages_of_sources(app: Sphinx) -> Iterator[tuple[str, dict[str, str], str]]:
    """Pages without a document: not in the search, not in the navigation, quick to make."""
    for address, title, body in sources.pages(ROOT, sources.files_to_show(ROOT, LINKED)):
        yield address, {"title": title, "body": body}, "page.html"


# --- The reference -----------------------------------------------------------------------------------------


def show_primitives_as_functions(app: Sphinx) -> None:
    """What autodoc finds in the public modules, in this process: functions for primitives, and each class once."""
    seen: set[Any] = set()
    for namespace in NAMESPACES:
        values = {name: value for name, value in public(namespace).items()
                  if not (inspect.isclass(value) and value in seen)}
        classes = {value for value in values.values() if inspect.isclass(value)}
        seen |= classes
        module = import_module(namespace)
        module.__all__ = list(values)
        for name, value in values.items():
            setattr(module, name, value.forward if isinstance(value, Primitive) else value)
        for base in {base for cls in classes for base in cls.__mro__}:
            for name, value in dict(vars(base)).items():
                if isinstance(value, Primitive):
                    setattr(base, name, value.forward)


def fences_are_blocks(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """A fenced block of a docstring, as reStructuredText has it."""
    lines[:] = re.sub(r"^```\w*\n(.*?)^```$", lambda block: "::\n\n" + textwrap.indent(block[1], "    "),
                      "\n".join(lines), flags=re.MULTILINE | re.DOTALL).split("\n")


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """The line of the source of an object of the reference, whose pages are all in one folder."""
    try:
        value = reduce(getattr, info["fullname"].split("."), import_module(info["module"]))
        value = inspect.unwrap(getattr(value, "fget", value))
        file = Path(inspect.getfile(value)).relative_to(ROOT).as_posix()
        return f"../source/{file}.html#L-{inspect.getsourcelines(value)[1]}"
    except (AttributeError, TypeError, ValueError, OSError):  # data, a field, or an object from elsewhere
        return None
