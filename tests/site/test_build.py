"""The site's own steps around Sphinx: links lead to where their files are shown, and a link to nothing is found."""

import json
from io import StringIO
from pathlib import PurePosixPath
from xml.etree import ElementTree

import pytest

from docs.site import sources
from docs.site.build import write_for_robots
from docs.site.links import BrokenLink, Links, check


@pytest.fixture
def repository(tmp_path):
    """A repository of a few files, which link to each other."""
    for path in ("README.md", "docs/gpu.md", "docs/results/README.md", "docs/images/a.png", "minigrad/ops/shape.py",
                 "examples/lessons/03_by_hand.py", "examples/lessons/ja/03_by_hand.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text('"""What it is."""\n\nx = 1 < 2\n', encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("page", "markdown", "rewritten"), [
    ("README.md", "[a](docs/gpu.md#memory)", "[a](site:gpu.html#memory)"),
    ("docs/gpu.md", "[a](results/README.md)", "[a](site:results/index.html)"),
    ("docs/gpu.md", "[a]: ../examples/lessons/03_by_hand.py", "[a]: site:lessons/03_by_hand.html"),
    ("examples/lessons/ja/03_by_hand.md", "[a](../03_by_hand.py)", "[a](site:lessons/03_by_hand.html)"),
    ("examples/lessons/03_by_hand.py", "[a](ja/03_by_hand.md)", "[a](site:ja/lessons/03_by_hand.html)"),
    ("docs/gpu.md", "[`a`](../minigrad/ops/shape.py)", "[`a`](site:source/minigrad/ops/shape.py.html)"),
    ("docs/gpu.md", "[a](../minigrad)", "[a](site:source/minigrad/index.html)"),
    ("docs/gpu.md", "![a](images/a.png)", "![a](/files/docs/images/a.png)"),
    ("docs/gpu.md", "[a](images/a.png)", "[a](site:files/docs/images/a.png)"),
    ("docs/gpu.md", "`f[0](x)` and [a](https://x.org/y)", "`f[0](x)` and [a](https://x.org/y)"),
    ("docs/gpu.md", "```\n[a](nothing.md)\n```\n[a](gpu.md)", "```\n[a](nothing.md)\n```\n[a](site:gpu.html)"),
])
def test_a_link_leads_to_where_its_file_is_shown(repository, page, markdown, rewritten):
    assert Links(repository).rewrite(markdown, page) == rewritten


@pytest.mark.parametrize("markdown", [
    "[a](nothing.md)", "![a](nothing.png)", "[a]: nothing.py", "[a](../../outside.md)", "![a](https://x.org/a.png)"])
def test_a_link_to_nothing_and_a_picture_from_elsewhere_are_refused(repository, markdown):
    with pytest.raises(BrokenLink, match=r"docs/gpu\.md"):
        Links(repository).rewrite(markdown, "docs/gpu.md")


def test_what_is_linked_is_remembered(repository):
    links = Links(repository)
    links.rewrite("[a](../minigrad/ops/shape.py) ![b](images/a.png) [c](results/README.md)", "docs/gpu.md")
    assert links.sources == {PurePosixPath("minigrad/ops/shape.py")}
    assert links.images == {PurePosixPath("docs/images/a.png")}


def test_the_check_of_the_site_finds_each_link_to_nothing_and_no_other(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.html").write_text('<h1 id="top-of-a"><a href="b/c.html#d">', encoding="utf-8")
    good = '<p id="d"><a href="../a.html#top-of-a"></a><a href="#d"></a><a href="//x.org"></a><img src="p.png?v=1">'
    bad = '<a href="../b.html"></a><a href="../a.html#none"></a><a href="#none"></a><img src="q.png">'
    (tmp_path / "b/p.png").touch()
    (tmp_path / "b/c.html").write_text(good, encoding="utf-8")
    check(tmp_path)
    (tmp_path / "b/c.html").write_text(good + bad, encoding="utf-8")
    with pytest.raises(BrokenLink) as caught:
        check(tmp_path)
    found = [line.split()[1] for line in str(caught.value).splitlines()]
    assert found == ["#none", "../a.html#none", "../b.html", "q.png"]


def test_sources_have_a_page_each_with_numbered_lines_and_folders_lead_to_them(repository):
    files = sources.files_to_show(repository, {PurePosixPath("README.md")})
    pages = {address: body for address, _, body in sources.pages(repository, files)}
    assert 'id="L-3"' in pages["source/minigrad/ops/shape.py"]
    assert "&lt;" in pages["source/minigrad/ops/shape.py"]
    assert "source/README.md" in pages
    assert "What it is." in pages["source/minigrad/ops/index"]
    for address, body in pages.items():
        path = repository / f"{address}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
    check(repository / "source")


def test_the_sitemap_names_whole_addresses_and_the_page_for_wrong_ones_works_at_any_depth(tmp_path):
    (tmp_path / "ja").mkdir()
    for name in ("index.html", "ja/index.html", "search.html"):
        (tmp_path / name).touch()
    (tmp_path / "404.html").write_text("<html><head></head>", encoding="utf-8")
    write_for_robots(tmp_path, "https://x.org/minigrad/")
    listed = [place.text for place in ElementTree.parse(tmp_path / "sitemap.xml").iter() if place.tag.endswith("loc")]
    assert listed == ["https://x.org/minigrad/index.html", "https://x.org/minigrad/ja/index.html"]
    assert '<head><base href="/minigrad/">' in (tmp_path / "404.html").read_text(encoding="utf-8")


def test_japanese_headings_have_the_anchors_of_a_code_host_and_the_search_finds_parts_of_words(tmp_path):
    pytest.importorskip("myst_nb")
    application = pytest.importorskip("sphinx.application")
    pytest.importorskip("math_core")
    (tmp_path / "index.md").write_text("# 勾配\n\n[下](#演習)へ\n\n## 演習\n\n誤差逆伝播とNumPy\n", encoding="utf-8")
    settings = {"extensions": ["myst_nb", "docs.site.extension"], "language": "ja", "myst_heading_anchors": 6,
                "site": {"root": tmp_path, "prefix": "ja/", "counterparts": {}, "lessons": [], "sources": [],
                         "runnable": False}}
    application.Sphinx(tmp_path, None, tmp_path / "out", tmp_path / "trees", "html", settings, None, StringIO()).build()
    html = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert '<section id="演習">' in html
    assert '<a class="headerlink" href="#演習"' in html
    assert 'href="#id' not in html
    index = (tmp_path / "out/searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))["terms"]
    assert {"逆伝", "伝播", "差", "numpy"} <= set(found)
