"""``python -m docs.site.build``: the demo, the lessons, the tree of pages, Sphinx, whose every warning ends the build.

What is made on the way lies in build/site; the site itself is docs/_site, and needs nothing else.
"""

import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from docs.site.lessons import digest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "site"
PAGES = BUILD / "pages"  # what Sphinx reads: each file at its place in the repository, so that links hold
SITE = ROOT / "docs" / "_site"
LESSONS = ROOT / "build" / "lessons"
KINDS = {".md", ".png", ".svg", ".gif", ".webp"}
BELOW = {  # the pages below an index page, in the navigation
    "examples/lessons/README.md": ("[0-9]*", "exercise_*"),
    "examples/lessons/ja/README.md": ("[0-9]*",),
    "docs/gradients/index.md": ("*",),
    "docs/ja/index.md": ("/README.ja", "*", "/examples/lessons/ja/README"),
}


def build() -> None:
    demo, mark, current = BUILD / "demo", BUILD / "demo.digest", digest(ROOT / "transformer/cli/demo.py")
    if mark.is_file() and mark.read_text() == current:
        run(["-m", "docs.site.lessons"])
    else:
        shutil.rmtree(demo, ignore_errors=True)
        run(["-m", "docs.site.lessons"], ["-m", "transformer", "demo", "--out", str(demo)])
        mark.write_text(current)
    shutil.rmtree(PAGES, ignore_errors=True)
    collect()
    html = BUILD / "html"  # not the site: MyST-NB leaves notebooks beside what it writes
    run(["-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-a", "-c", "docs/site", str(PAGES), str(html)])
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(html, SITE, ignore=shutil.ignore_patterns(".*", "_sources"))
    shutil.copyfile(demo / "explain.html", SITE / "explorer_demo.html")
    (SITE / ".nojekyll").touch()  # or GitHub Pages leaves out _static
    print(f"wrote {SITE.relative_to(ROOT)}; look at it: python -m http.server -d {SITE.relative_to(ROOT)}")


def run(*commands: list[str]) -> None:
    """Run Python with each of these arguments, at the same time, in the repository. Exits if one fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment) for command in commands]
    failed = [" ".join(command) for command, process in zip(commands, running, strict=True) if process.wait()]
    if failed:
        sys.exit(f"failed: python {' and '.join(failed)}")


def collect() -> None:
    """Write the tree of pages: the Markdown and its pictures, the executed lessons, and the navigation."""
    for path in [*ROOT.glob("*.md"), *files(ROOT / "docs"), *files(ROOT / "examples")]:
        write(path.relative_to(ROOT).as_posix(), path.read_bytes())
    for path in LESSONS.glob("*/*.ipynb"):
        write(f"examples/lessons/{path.name if path.parent.name == 'en' else f'ja/{path.name}'}", path.read_bytes())
    first = (ROOT / "docs/site/index.md").read_text(encoding="utf-8").replace("](../", "](docs/")
    guides = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    write("index.md", (first + navigation(guides)).encode())
    write("reference/index.rst", (ROOT / "docs/site/reference.rst").read_bytes())
    for index, pages in BELOW.items():
        with (PAGES / index).open("a", encoding="utf-8") as file:
            file.write(toctree(pages))


def files(folder: Path) -> Iterator[Path]:
    """The pages and pictures of a folder; the prose of Japanese lessons is in their notebooks."""
    for path in folder.rglob("*"):
        place = path.relative_to(ROOT).as_posix()
        if path.suffix in KINDS and not re.search(r"/(_?site|runs|ja/\d\d_\w+\.md)\b", place):
            yield path


def write(name: str, content: bytes) -> None:
    path = PAGES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def navigation(guides: str) -> str:
    """What docs/index.md links to, section by section. Sphinx warns of a page that nothing leads to."""
    parts, seen = toctree(["README", "docs/index"]), set()
    for section in re.split(r"^## ", guides, flags=re.MULTILINE)[1:]:
        pages = [posixpath.normpath(f"docs/{page}") for page in re.findall(r"\]\(([^)#]+)\.md\)", section)]
        parts += toctree([page for page in pages if page not in seen], section.partition("\n")[0])
        seen.update(pages)
    return parts + toctree(["reference/index"], "Look up") + toctree(["docs/ja/index"], "日本語")


def toctree(pages: list[str] | tuple[str, ...], caption: str = "") -> str:
    """A hidden list of pages, which Sphinx makes the navigation of."""
    options = ":hidden:\n:glob:\n" + (f":caption: {caption}\n" if caption else "")
    return f"\n```{{toctree}}\n{options}\n" + "\n".join(pages) + "\n```\n"


if __name__ == "__main__":
    build()
