"""The pages that show source files: each file with its colours and numbered lines, each folder with what is in it."""

import ast
import posixpath
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path, PurePosixPath

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

SHOWN = ("minigrad", "transformer", "examples", "docs")  # and whatever else a page links to
SUFFIXES = {".py", ".js", ".css"}


def files_to_show(root: Path, linked: set[PurePosixPath]) -> list[PurePosixPath]:
    """All sources of the packages, examples and docs, and the linked files and what is in the linked folders."""
    folders = [*SHOWN, *(path for path in linked if (root / path).is_dir())]
    found = {path.relative_to(root) for folder in folders for path in (root / folder).rglob("*")
             if path.suffix in SUFFIXES and not path.relative_to(root).as_posix().startswith("docs/_site")}
    return sorted({PurePosixPath(path) for path in found} | {path for path in linked if (root / path).is_file()})


def pages(root: Path, files: list[PurePosixPath]) -> Iterator[tuple[str, str, str]]:
    """(address without .html, title, HTML) of each file and of each folder above one."""
    for file in files:
        address = f"source/{file}"
        yield address, str(file), f'<div class="source">{heading(file, address)}{coloured(root / file)}</div>'
    for folder in sorted({parent for file in files for parent in file.parents if parent.name}):
        address = f"source/{folder}/index"
        inside = sorted({folder / file.relative_to(folder).parts[0] for file in files if file.is_relative_to(folder)},
                        key=lambda path: (path not in files, path))
        rows = "".join(row(root, path, is_file=path in files) for path in inside)
        yield address, f"{folder}/", (f'<div class="source">{heading(folder, address)}'
                                      '<div class="table-wrapper container"><table class="docutils"><tbody>'
                                      f'{rows}</tbody></table></div></div>')


def heading(path: PurePosixPath, address: str) -> str:
    """The path; each folder in it leads to its page."""
    here = posixpath.dirname(address)
    above = [f'<a href="{posixpath.relpath(f"source/{parent}/index.html", here)}">{parent.name}</a>'
             for parent in reversed(path.parents) if parent.name]
    return f"<h1>{' / '.join([*above, path.name])}</h1>"


def row(root: Path, path: PurePosixPath, *, is_file: bool) -> str:
    """A line of a folder's page: the name, and what the file says that it is."""
    href, name = (f"{path.name}.html", path.name) if is_file else (f"{path.name}/index.html", f"{path.name}/")
    file = root / path if is_file else root / path / "__init__.py"
    is_python = file.suffix == ".py" and file.is_file()
    said = first_sentence(ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "") if is_python else ""
    said = re.sub(r"``(.+?)``", r"<code>\1</code>", escape(said))
    return f'<tr><td><a href="{href}"><code>{escape(name)}</code></a></td><td>{said}</td></tr>'


def first_sentence(docstring: str) -> str:
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z(`])", paragraph)[0]


def coloured(file: Path) -> str:
    """The file as HTML; line 12 has the anchor L-12."""
    try:
        lexer = get_lexer_for_filename(file.name)
    except ClassNotFound:
        lexer = TextLexer()
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, wrapcode=True)
    return highlight(file.read_text(encoding="utf-8"), lexer, formatter)
