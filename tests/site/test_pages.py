"""The built site: every page is opened in Chromium, from a host of static pages. `make site` ends with these tests.

What they ask of a page is also asked of pages with faults, which need no site.
"""

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs/_site"
MEASURES = (ROOT / "tests/explorer/measures.js").read_text(encoding="utf-8")
EXPLORER = "explorer_demo.html"  # tests/explorer looks at its colours, names and widths
# The width is that of all that a reader could scroll to: of the text, or of any box around it.
FACTS = """(document) => ({
    language: document.documentElement.lang, title: document.title,
    width: Math.max(...[...document.querySelectorAll("html, :has(main, [role=main])")].map((box) => box.scrollWidth)),
    h1: document.querySelectorAll("h1").length, main: document.querySelectorAll("main, [role=main]").length,
    navigation: document.querySelectorAll("nav").length,
    images: [...document.images].filter((image) => !image.alt.trim()).map((image) => image.getAttribute("src")),
})"""
IN_FRAMES = f"""(addresses) => Promise.all(addresses.map((address) => new Promise((done) => {{
    const frame = Object.assign(document.createElement("iframe"), {{src: address}});
    frame.style = "border: 0; width: 390px; height: 800px";
    frame.onload = () => {{
        done(({FACTS})(frame.contentDocument));
        frame.remove();
    }};
    document.body.append(frame);
}})))"""
NOT_ASKED = (
    "color-contrast",  # axe takes minutes; see pale_texts
    "empty-table-header",  # the corner of a table with names of rows
)
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
built = pytest.mark.skipif(not PAGES, reason="docs/_site has not been built: make site")


# --- The host and the browser ------------------------------------------------------------------------------------


class Host(SimpleHTTPRequestHandler):
    """Serves a folder below the path ``top``, and its 404.html for whatever is missing, as hosts of static pages do."""

    def __init__(self, *args: Any, top: str, **options: Any) -> None:
        self.top = top
        super().__init__(*args, **options)

    def translate_path(self, path: str) -> str:
        return super().translate_path("/" + path.removeprefix(self.top) if path.startswith(self.top) else "/outside")

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def send_error(self, code: int, *args: Any) -> None:
        page = (Path(self.directory) / "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def serve(folder: Path, top: str = "/") -> Iterator[str]:
    """The address of `folder` on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(folder), top=top)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{top}"
        finally:
            server.shutdown()
            thread.join()


class Tab:
    """A page of the browser; ``problems`` are what it asked for elsewhere or in vain, and the errors it met."""

    def __init__(self, browser: Any, home: str) -> None:
        self.problems: list[str] = []
        self.home = home
        self.page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        self.page.on("request", lambda request: self.inside(request.url) or self.add("asks elsewhere", request.url))
        # ERR_ABORTED: the tab has left the page, or needs no icon.
        self.page.on("requestfailed", lambda request: request.failure == "net::ERR_ABORTED"
                     or self.add("not loaded", request.url))
        self.page.on("response", lambda response: response.ok or self.add(str(response.status), response.url))
        self.page.on("websocket", lambda socket: self.add("asks elsewhere", socket.url))
        self.page.on("pageerror", lambda error: self.add("error", str(error)))
        self.page.on("console", lambda message: message.type != "error" or self.add("console", message.text))

    def inside(self, url: str) -> bool:
        return url.startswith((self.home, "data:", "blob:"))

    def add(self, kind: str, what: str) -> None:
        self.problems.append(f"{kind}: {what}")

    def open(self, name: str) -> None:
        self.problems.clear()
        self.page.goto(self.home + name)

    def look(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {{ {MEASURES}\n return {expression}; }}")


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[Tab]:
    """A tab for the built site, which lies where its sitemap says."""
    with serve(SITE, urlsplit(address_of("")).path) as home:
        opened = Tab(browser, home)
        yield opened
        opened.page.close()


# --- What a page is asked ------------------------------------------------------------------------------------------


def wrong_facts(facts: dict[str, Any], language: str) -> Iterator[str]:
    """What is missing of what every page has."""
    if facts["language"] != language:
        yield f"lang: {facts['language']}"
    if not facts["title"].strip():
        yield "no title"
    for name in ("h1", "main"):
        if facts[name] != 1:
            yield f"{facts[name]} {name}"
    if not facts["navigation"]:
        yield "no nav"
    yield from (f"no alternative text: {image}" for image in facts["images"])


def pale_texts(tab: Tab) -> Iterator[str]:
    """Texts that are hard to read on what is behind them, in the light and in the dark scheme."""
    for scheme in ("dark", "light"):
        tab.page.emulate_media(color_scheme=scheme)
        tab.page.evaluate("document.getAnimations().forEach((change) => change.finish())")
        for text in tab.look("poorContrast(4.5)"):
            yield f"contrast {text['ratio']} ({scheme}): {text['text'][:40]} in {text['in']}"


def too_wide(tab: Tab) -> Iterator[str]:
    """What a telephone could show only by scrolling the whole page to the side."""
    tab.page.set_viewport_size({"width": 390, "height": 800})
    if (width := tab.page.evaluate(f"({FACTS})(document)")["width"]) > 390:
        yield f"at 390 px: {width} px wide"
    yield from (f"at 390 px: {place}" for place in tab.look("overflowing()"))
    tab.page.set_viewport_size({"width": 1280, "height": 800})


def broken_rules(tab: Tab) -> Iterator[str]:
    """What axe finds."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], "rules": {rule: {"enabled": False} for rule in NOT_ASKED}}
    for rule in Axe().run(tab.page, options=options).response["violations"]:
        yield from (f"{rule['id']}: {node['target'][0]}" for node in rule["nodes"])


def language_of(name: str) -> str:
    return "ja" if name.startswith("ja/") else "en"


def wrong(tab: Tab, name: str) -> list[str]:
    """All that is wrong with a page."""
    tab.open(name)
    facts = tab.page.evaluate(f"({FACTS})(document)")
    return [*wrong_facts(facts, language_of(name)), *pale_texts(tab), *too_wide(tab), *broken_rules(tab), *tab.problems]


# --- Pages with faults ---------------------------------------------------------------------------------------------

GOOD = """<!DOCTYPE html><html lang="en">
<head><meta charset="utf-8"><title>A page</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width"></head>
<body><nav><a href="#">Top</a></nav><main><h1>A page</h1><p>Words.</p></main></body></html>"""
FAULTS = [
    ("<p>", '<p><img alt="a" src="https://example.org/a.png">', "asks elsewhere: https://example.org/a.png"),
    ("<p>", '<p><img alt="a" src="none.png">', "404: "),
    ("</main>", "</main><script>throw new Error('thrown')</script>", "error: thrown"),
    ("</main>", "</main><script>console.error('told')</script>", "console: told"),
    ('lang="en"', 'lang="ja"', "lang: ja"),
    ("A page</title>", "</title>", "no title"),
    ("<p>", "<h1>Another</h1><p>", "2 h1"),
    ("main>", "div>", "0 main"),
    ("nav>", "div>", "no nav"),
    ("<p>", '<p><img src="data:," alt=" ">', "no alternative text: data:,"),
    ("<p>", '<p style="color: #888">', "contrast 3.54 (light): Words."),
    ("<p>", '<style>@media (prefers-color-scheme: dark) {body {background: #111}}</style><p>', "contrast 1.11 (dark)"),
    ("<p>", '<p style="width: 500px">', "at 390 px: 508 px wide"),
    ("<main>", '<div style="overflow: auto"><main style="width: 500px">', "at 390 px: 500 px wide"),
    ("<p>", "<p><button></button>", "button-name: "),
    ("<p>", '<p tabindex="5">', "tabindex: "),
]


@pytest.mark.parametrize(("old", "new", "complaint"), [("", "", ""), *FAULTS], ids=lambda text: text[:24])
def test_each_fault_of_a_page_is_found_and_nothing_else(old, new, complaint, browser, tmp_path):
    for name, text in (("index.html", GOOD.replace(old, new) if old else GOOD), ("404.html", GOOD)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with serve(tmp_path) as home:
        tab = Tab(browser, home)
        found = wrong(tab, "index.html")
        tab.page.close()
    assert any(line.startswith(complaint) for line in found) if complaint else found == []


# --- The built site ------------------------------------------------------------------------------------------------


@cache
def markup(name: str) -> str:
    return (SITE / name).read_text(encoding="utf-8")


@cache
def address_of(name: str) -> str:
    """The whole address that the site gives to a page; of "", to its top."""
    top = re.search(r"^Sitemap: (.*)sitemap\.xml$", (SITE / "robots.txt").read_text(encoding="utf-8"), re.MULTILINE)
    return top[1] + name


def without_new_markup(names: list[str]) -> list[str]:
    """The pages whose every class is that of an element of a shorter one."""
    seen: set[str] = set()
    without = []
    for name in sorted(names, key=lambda name: len(markup(name))):
        classes = set(re.findall('class="([^"]*)"', markup(name)))
        if classes <= seen:
            without.append(name)
        seen |= classes
    return without


# Generated pages differ only in the text between the same elements: those with others are looked at closely.
PLAIN = without_new_markup([name for name in PAGES if name.startswith(("source/", "reference/"))])
CLOSELY = sorted(set(PAGES) - set(PLAIN) - {EXPLORER})


@built
@pytest.mark.site
@pytest.mark.parametrize("name", CLOSELY or [""])
def test_a_page_is_whole_in_both_schemes_and_at_any_width(name, tab):
    found = wrong(tab, name)
    assert not found, "\n".join(found)


@built
@pytest.mark.site
@pytest.mark.parametrize("names", [PLAIN[start:start + 25] for start in range(0, len(PLAIN), 25)] or [[""]],
                         ids=lambda names: f"{names[0]} …")
def test_generated_pages_are_whole_at_the_width_of_a_telephone(names, tab):
    tab.open("404.html")
    facts = tab.page.evaluate(IN_FRAMES, [tab.home + name for name in names])
    found = [f"{name}: {wrong}" for name, page in zip(names, facts, strict=True)
             for wrong in [*wrong_facts(page, "en"), *(["wider than 390 px"] if page["width"] > 390 else [])]]
    found += tab.problems
    assert not found, "\n".join(found)


@built
@pytest.mark.site
def test_the_explorer_asks_for_nothing_and_meets_no_error(tab):
    tab.open(EXPLORER)
    assert tab.problems == []


def search(tab: Tab, name: str, word: str) -> None:
    """Type a word into the search field of a page, and follow the first result, which has the word."""
    tab.open(name)
    tab.page.fill(".sidebar-search", word)
    tab.page.press(".sidebar-search", "Enter")
    tab.page.locator("#search-results li a").first.click()
    tab.page.wait_for_url(lambda url: "search.html" not in url)
    assert word in tab.page.locator("article").inner_text().lower()


searches = pytest.mark.parametrize(("name", "word"), [
    ("lessons/03_attention_by_hand.html", "softmax"), ("ja/lessons/03_attention_by_hand.html", "行列積")])


@built
@pytest.mark.site
@searches
def test_the_search_finds_pages_with_a_word(name, word, tab):
    search(tab, name, word)
    assert tab.problems == []


@built
@pytest.mark.site
@searches
def test_pages_and_search_work_from_a_folder_without_a_host(name, word, browser):
    tab = Tab(browser, SITE.as_uri() + "/")
    for page in ("index.html", name):
        tab.open(page)
        assert tab.problems == []
    search(tab, name, word)  # its problems: no excerpt of a result can be fetched from a folder
    tab.page.close()


@built
@pytest.mark.site
def test_a_reader_chooses_light_or_dark_and_the_next_page_keeps_it(tab):
    tab.open("guides.html")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.look(ground)
    button = tab.page.locator(".theme-toggle:visible")
    for _ in range(3):
        if tab.look(ground) == light:
            button.click()
    dark = tab.look(ground)
    tab.open("lessons/index.html")
    assert tab.look(ground) == dark != light
    tab.look("localStorage.clear()")


@built
@pytest.mark.site
def test_a_wrong_address_at_any_depth_shows_a_page_with_style_and_ways_out(tab):
    tab.open("lessons/of/another/year.html")
    assert tab.problems == [f"404: {tab.page.url}",
                            "console: Failed to load resource: the server responded with a status of 404 (Not Found)"]
    tab.problems.clear()
    assert list(pale_texts(tab)) == []
    assert tab.look("getComputedStyle(document.querySelector('article')).display") == "block"
    tab.page.locator("article a").first.click()
    tab.page.wait_for_url(tab.home + "index.html")
    assert tab.problems == []


# --- What other programs read --------------------------------------------------------------------------------------


@built
@pytest.mark.site
def test_every_page_of_a_language_has_a_title_of_its_own():
    titles = Counter((language_of(name), re.search(r"<title>(.*?)</title>", markup(name), re.DOTALL)[1])
                     for name in PAGES)
    assert [title for title, number in titles.items() if number > 1] == []


@built
@pytest.mark.site
def test_the_sitemap_names_every_page_once_and_nothing_else():
    sitemap = ElementTree.parse(SITE / "sitemap.xml").getroot()
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    assert sitemap.tag == f"{space}urlset"
    listed = [place.text for place in sitemap.findall(f"{space}url/{space}loc")]
    no_reading = {"404.html", "search.html", "ja/search.html"}
    assert sorted(listed) == sorted(address_of(name) for name in PAGES if name not in no_reading)


def links_in_head(name: str, kind: str) -> dict[str, str]:
    """Where the ``<link rel=kind>`` of a page lead, by language ("" without one), as whole addresses."""
    found = {}
    for link in re.findall(rf'<link rel="{kind}"[^>]*>', markup(name)):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', link))
        found[attributes.get("hreflang", "")] = urljoin(address_of(name), attributes["href"])
    return found


@built
@pytest.mark.site
@pytest.mark.parametrize("index", ["index.html", "ja/index.html"])
def test_some_pages_name_their_other_language(index):
    assert set(links_in_head(index, "alternate")) == {"en", "ja"}


@built
@pytest.mark.site
def test_pages_say_where_they_are_and_those_in_two_languages_name_each_other():
    by_address = {address_of(name): name for name in PAGES}
    for name in set(PAGES) - {EXPLORER, "404.html"}:
        assert links_in_head(name, "canonical") == {"": address_of(name)}, name
        alternates = links_in_head(name, "alternate")
        assert alternates.get(language_of(name), address_of(name)) == address_of(name), name
        for address in alternates.values():
            assert links_in_head(by_address[address], "alternate") == alternates, name
