"""The phases of the build: the demo, the lessons, the source trees, Sphinx for each language, and the last check.

Everything that is made on the way lies in build/site; the site itself is docs/_site, and needs nothing else.
"""

import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import nbformat

from docs.site import links, names, reference, sources
from docs.site.browser.install import install

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "site"
SITE = ROOT / "docs" / "_site"
LESSONS = ROOT / "build" / "lessons"
HTML = BUILD / "html"
ASSEMBLED = BUILD / "assembled.json"
EXPLORER = "explorer_demo.html"


def site_url() -> str:
    """Where the site will be, with a slash at the end; without SITE_URL, where ``make site`` says to look at it."""
    return os.environ.get("SITE_URL", "http://localhost:8000/").rstrip("/") + "/"


def build() -> None:
    for folder in ("en", "ja", "extra", "html"):
        shutil.rmtree(BUILD / folder, ignore_errors=True)
        (BUILD / folder).mkdir(parents=True)
    shutil.rmtree(SITE, ignore_errors=True)
    with phase("the explorer of the demo's model"):
        demo(BUILD / "extra" / EXPLORER)
    with phase("the source trees"):
        assemble()
    for language, folder in (("en", SITE), ("ja", SITE / "ja")):
        with phase(f"Sphinx, {language}"):
            sphinx(language)
            shutil.copytree(HTML / language, folder, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("_sources", ".buildinfo"))
    if pyodide := os.environ.get("PYODIDE"):
        with phase("Python for the browser"):
            install(ROOT / pyodide, SITE)
    with phase("sitemap, and a check of every link"):
        write_for_robots(SITE, site_url())
        links.check(SITE, leave_out=frozenset({EXPLORER, "404.html"}))
    print(f"wrote {SITE.relative_to(ROOT)}; look at it: python -m http.server -d {SITE.relative_to(ROOT)}")


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Print what is being done, and how long it took."""
    start = time.perf_counter()
    print(f"{name} …", flush=True)
    yield
    print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)


def run(*command: str) -> None:
    """Run Python with these arguments, in the repository. Exits with its status if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=False)
    if done.returncode:
        sys.exit(f"failed: python {' '.join(command)}")


def demo(explorer: Path) -> None:
    """The explorer's page of the demo's model, which is trained the first time."""
    page = BUILD / "demo" / "explain.html"
    if not page.is_file():
        run("-m", "transformer", "demo", "--out", str(page.parent))
    shutil.copyfile(page, explorer)


def sphinx(language: str) -> None:
    """Write the pages of a language into HTML, not into the site: MyST-NB leaves copies of notebooks beside them."""
    run("-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-a", "-j", "auto", "-t", language, "-c", "docs/site",
        "-d", str(BUILD / "doctrees" / language), str(BUILD / language), str(HTML / language))


# --- The source trees --------------------------------------------------------------------------------------


def assemble() -> None:
    """Write what Sphinx reads, a folder for each language, and what else it needs to know."""
    found = links.Links(ROOT)
    pages = prose(found) | lessons(found)
    reference.write(BUILD / "en" / "reference")
    add_navigation(pages)
    for name, text in pages.items():
        write_page(name, text)
    for image in found.images:
        for copy in (BUILD / "en", BUILD / "ja", BUILD / "extra"):
            (copy / "files" / image).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / image, copy / "files" / image)
    addresses = [name.rpartition(".")[0] for name in pages]
    pairs = {address: f"ja/{address}" for address in addresses if f"ja/{address}" in addresses}
    ASSEMBLED.write_text(json.dumps({
        "counterparts": pairs | {japanese: english for english, japanese in pairs.items()},
        "lessons": [name.removesuffix(".ipynb") for name in pages if name.endswith(".ipynb")],
        "sources": [str(path) for path in sources.files_to_show(ROOT, found.sources)],
    }), encoding="utf-8")


def prose(found: links.Links) -> dict[str, str]:
    """The Markdown files that become pages, by their names in the source tree."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "examples").rglob("README.md"), *(ROOT / "docs").rglob("*.md")]
    files = [path.relative_to(ROOT).as_posix() for path in sorted(paths)]
    return {f"{page}.md": for_the_site((ROOT / file).read_text(encoding="utf-8"), file, found)
            for file in files if (page := links.page_of(file))}


def for_the_site(text: str, file: str, found: links.Links) -> str:
    """Markdown of a file of the repository with links for the site, and its public names linked to the reference."""
    return names.linked(found.rewrite(text, file))


def lessons(found: links.Links) -> dict[str, str]:
    """The executed notebooks of both languages, with links for the site; each is also there to be downloaded."""
    pages = {}
    for path in sorted(LESSONS.glob("*/*.ipynb")):
        script = f"{path.stem}.py" if path.parent.name == "en" else f"{path.parent.name}/{path.stem}.md"
        address = links.page_of(f"examples/lessons/{script}")
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = for_the_site(cell.source, f"examples/lessons/{script}", found)
        copy = BUILD / "extra" / f"{address}.ipynb"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        pages[f"{address}.ipynb"] = nbformat.writes(notebook)
    return pages


def write_page(name: str, text: str) -> None:
    """Write a page into the tree of its language."""
    path = BUILD / name if name.startswith("ja/") else BUILD / "en" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def add_navigation(pages: dict[str, str]) -> None:
    """Add the lists that Sphinx makes the navigation from: what an index page links to, in its order.

    Every section of the guides' index is a part of the navigation of its own. A page that none leads to is a warning of
    Sphinx, and so ends the build.
    """
    parts, seen = toctree(["readme", "guides"]), {"readme", "guides"}
    for section in re.split(r"^## ", pages["guides.md"], flags=re.MULTILINE)[1:]:
        new = [name for name in pages_linked(section) if name not in seen]
        seen.update(new)
        parts += toctree(new, caption=section.partition("\n")[0])
    pages["ja/index.md"] += toctree(["ja/readme"])
    pages["index.md"] += parts + toctree(["reference/index"], caption="Look up")
    for index in ("lessons/index", "gradients/index", "ja/index", "ja/lessons/index"):
        below = [name for name in pages_linked(pages[f"{index}.md"]) if index_above(name) == index]
        pages[f"{index}.md"] += toctree(below)


def index_above(page: str) -> str:
    """The index page that a page stands below: ``ja/lessons/index`` for ``ja/lessons/06_order``."""
    folder = posixpath.dirname(page.removesuffix("/index"))
    return f"{folder}/index" if folder else "index"


def pages_linked(text: str) -> list[str]:
    """The pages of prose that rewritten Markdown links to, each once."""
    found = re.findall(r"\]\(site:([^)#]+)\.html[)#]", text)
    return list(dict.fromkeys(name for name in found if not name.startswith("source/")))


def toctree(addresses: list[str], caption: str = "") -> str:
    """A hidden list of pages, by their addresses in the site."""
    title = f":caption: {caption}\n" if caption else ""
    entries = "\n".join(f"/{address.removeprefix('ja/')}" for address in addresses)
    return f"\n```{{toctree}}\n:hidden:\n{title}\n{entries}\n```\n"


# --- For search engines ------------------------------------------------------------------------------------


def write_for_robots(site: Path, url: str) -> None:
    """Write sitemap.xml and robots.txt, which name whole addresses, and the address of the top into 404.html.

    A server shows 404.html in the place of any page that is missing, so its links cannot be relative to that page.
    """
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    listed = [name for name in names if name.rpartition("/")[2] not in ("404.html", "search.html")]
    addresses = "".join(f"<url><loc>{url}{name}</loc></url>\n" for name in listed)
    (site / "sitemap.xml").write_text('<?xml version="1.0" encoding="utf-8"?>\n'
                                      '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
                                      f"{addresses}</urlset>\n", encoding="utf-8")
    (site / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {url}sitemap.xml\n", encoding="utf-8")
    page = site / "404.html"
    page.write_text(page.read_text(encoding="utf-8").replace("<head>", f'<head><base href="{urlsplit(url).path}">', 1),
                    encoding="utf-8")
