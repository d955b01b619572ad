"""The README and the pages of docs/: their examples run and print what they show, and what they name exists."""

import ast
import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import minigrad.functional
import minigrad.ops

from transformer.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "README.ja.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")),
         *sorted((ROOT / "examples").rglob("README.md"))]
JAPANESE = {ROOT / "README.ja.md", *(ROOT / "docs/ja").rglob("*.md")}  # tests/site: their blocks equal those in English


def page_id(path):
    return path.relative_to(ROOT).as_posix()


pages = pytest.mark.parametrize("page", PAGES, ids=page_id)


def blocks(page):
    """The fenced blocks: the number of the first line, the language, the text."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(2)) + 1, *match.groups()) for match in found]


def prose(page):
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


# --- Examples ----------------------------------------------------------------------------------------------


def shown(statement, lines):
    """What the comment after a statement says that it prints, or raises: ``print(x)  # -> 3``."""
    _, arrow, text = lines[statement.end_lineno - 1].partition("  # -> ")
    return text.strip() if arrow else None


def output_of(statement, where, namespace, *, may_raise):
    """What a statement prints; if it may raise, an exception is shown as its type and message."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(ast.Module([statement], []), where, "exec"), namespace)
        except Exception as error:  # whatever it is, the page must show it
            if not may_raise:
                raise
            return f"{type(error).__name__}: {error}"
    return printed.getvalue().strip("\n")


def matches(found, expected):
    """Equal, where an ellipsis stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), found, flags=re.DOTALL) is not None


@pytest.mark.parametrize("page", [page for page in PAGES if page not in JAPANESE], ids=page_id)
def test_python_blocks_run_and_print_what_they_show(page, tmp_path, monkeypatch, request):
    if page.name == "gpu.md":
        request.getfixturevalue("stand_in")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__docs__"}
    with minigrad.random.fork(0):
        for start, _, source in [block for block in blocks(page) if block[1] == "python"]:
            for folder in set(re.findall(r'"(runs/\w+)"', source)):  # what the commands of the page have trained
                CliRunner().invoke(main, ["train", "--task", "copy", "--train-count", "60", "--steps", "2", "--quiet",
                                          "--out", folder])
            module, lines = ast.parse(source), source.splitlines()
            checked = 0
            for statement in module.body:
                where = f"{page_id(page)}, line {start + statement.lineno - 1}"
                expected = shown(statement, lines)
                found = output_of(statement, where, namespace, may_raise=expected is not None)
                if expected is not None:
                    assert matches(found, expected), f"{where} gives\n    {found}\nand shows\n    {expected}"
                    checked += 1
            assert checked == source.count("# -> "), f"{page_id(page)}, block at line {start}: a result is not checked"


# --- Commands ----------------------------------------------------------------------------------------------


def commands():
    """(page, words) of every command in the bash blocks; what stands before and after a pipe is a command each."""
    for page in PAGES:
        for source in [text for _, language, text in blocks(page) if language == "bash"]:
            for line in source.splitlines():
                words = shlex.split(line, comments=True)
                while "|" in words:
                    yield page_id(page), words[: words.index("|")]
                    words = words[words.index("|") + 1 :]
                if words:
                    yield page_id(page), words


@pytest.mark.usefixtures("stand_in")  # for --device cuda
def test_commands_are_understood():
    """Each is one that exists, with arguments that it takes; tests of the commands themselves run them."""
    for page, words in commands():
        if words[0] == "mpirun":  # what it starts
            words = words[words.index("python"):]
        if words[:3] == ["python", "-m", "transformer"]:
            redirections = [i for i, word in enumerate(words) if word in ("<", ">")]
            name, *arguments = words[3 : min(redirections, default=len(words))]
            main.commands[name].make_context(name, arguments).close()  # a UsageError for what it does not take
        elif words[0] == "make":
            assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
        elif words[:2] == ["python", "-m"]:
            module = ROOT / words[2].replace(".", "/")
            assert (module / "__main__.py").is_file() or module.with_suffix(".py").is_file(), words
        elif words[0] == "python":
            assert (ROOT / words[1]).is_file()
        else:
            assert words[:2] == ["pip", "install"] or words[0] in ("echo", "jupyter"), f"{page}: what does {words} do?"


# --- Links and names ---------------------------------------------------------------------------------------


def links(page):
    without_code = re.sub(r"`[^`]*`", "", prose(page))  # `f[0](x)` is a call
    return re.findall(r"\]\(([^)\s]+)\)", without_code)


def anchors(page):
    """The anchors that a page's headings get: lower case, blanks as hyphens, punctuation dropped."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pages
def test_relative_links_resolve(page):
    assert page.read_text(encoding="utf-8").count("\n```") % 2 == 0, "a block is not closed"
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not re.match(r"\w+:", link):  # the web; "project:" and "site:" are checked with the site
            assert target.exists(), link
            assert target.is_relative_to(ROOT), link
            assert not anchor or anchor in anchors(target), link
