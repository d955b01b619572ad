"""The site: its links lead to pages and to sources, a link to nothing ends the build, the explorer works from it."""

import subprocess
import sys
import zlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.site.build import BUILD, ROOT, SITE
from docs.site.names import NAMESPACES, public
from transformer.data import get_task
from transformer.translator import Translator

built = pytest.mark.skipif(not SITE.is_dir(), reason="docs/_site has not been built: make site")
PAGES = {
    "index.md": "# First\n\n[a](minigrad/ops/shape.py) [b](minigrad) [c](lessons/03_x.py#two)\n"
                "```{toctree}\nlessons/03_x\nlessons/ja/03_x\n```\n",
    "lessons/03_x.md": "# One\n\n## Two\n\n[d](../index.md#first) [e](ja/03_x.md) [f](../minigrad/ops/shape.py)\n",
    "lessons/ja/03_x.md": "# 一\n\n## 演習\n\n[g](#演習) [h](../03_x.py)\n",
}


def sphinx(folder, pages):
    """The status of Sphinx on these pages, what it says, and what it makes of the first two."""
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "pseudoxml", "-c",
                           "docs/site", folder, folder / "out"], cwd=ROOT, capture_output=True, text=True, check=False)
    made = "".join((folder / f"out/{name}.pseudoxml").read_text(encoding="utf-8") for name in ("index", "lessons/03_x"))
    return done.returncode, done.stderr, made


def test_links_lead_to_lessons_sections_and_sources(tmp_path):
    status, said, made = sphinx(tmp_path, PAGES)
    assert (status, said) == (0, "")
    for address in ("source/minigrad/ops/shape.py.html", "source/minigrad/index.html", "lessons/03_x#two",
                    "../index#first", "lessons/ja/03_x", "../source/minigrad/ops/shape.py.html"):
        assert f'refuri="{address}"' in made


def test_a_link_to_nothing_ends_the_build(tmp_path):
    links = ["nothing.md", "nothing.py", "../outside.py", "lessons/03_x.md#none", "lessons/03_x.py#nor", "#not_here"]
    text = " ".join(f"[x]({link})" for link in links) + " ![x](nothing.png)"
    first = f"{PAGES['index.md']}\n{text}\n"
    status, said, _ = sphinx(tmp_path, PAGES | {"index.md": first, "lost.md": "# In no list\n"})
    assert status == 1
    assert [link for link in (*links, "nothing.png", "lost.md") if link.rpartition("#")[2] not in said] == []


@built
@pytest.mark.site
def test_every_public_name_is_in_the_reference():
    inventory = (SITE / "objects.inv").read_bytes().split(b"\n", 4)[4]
    described = {line.split()[0].rpartition(".")[2] for line in zlib.decompress(inventory).decode().splitlines()}
    for namespace in NAMESPACES:
        assert {name for name, value in public(namespace).items() if callable(value)} - described == set(), namespace


@built
@pytest.mark.site
def test_the_demos_model_reads_the_dates():
    """The recipe's figure in the README."""
    result = Translator.load(BUILD / "demo").evaluate(*zip(*get_task("dates").pairs("test", 1000, seed=1), strict=True))
    assert result["exact_match"] >= 0.99


@built
@pytest.mark.site
def test_every_page_asks_for_files_of_the_site_alone(browser):
    """And the first pages lead to the explorer, which works. The pages of the sources are alike: one is opened."""
    asked, problems = [], []
    page = browser.new_page()
    page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
    page.on("request", lambda request: asked.append(urlsplit(request.url)))
    source = SITE / "source/minigrad/index.html"
    for path in [source, *(path for path in sorted(SITE.rglob("*.html")) if SITE / "source" not in path.parents)]:
        asked.clear()
        page.goto(path.as_uri())
        files = [Path(unquote(address.path)) for address in asked if address.scheme == "file"]
        problems += [str(file) for file in files if not (file.is_file() and file.is_relative_to(SITE))]
        problems += [address.geturl() for address in asked if address.scheme not in ("file", "data", "blob")]
    for index in ("index.html", "docs/ja/index.html"):
        page.goto((SITE / index).as_uri())
        page.goto(page.locator("article strong a").evaluate("link => link.href"))
        assert "/explorer_demo.html" in page.url  # with its state behind a #
        page.wait_for_function("typeof explorer === 'object'")
    page.close()
    assert problems == []
