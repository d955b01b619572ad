"""The page is whole in itself: its parts are all there, nothing comes from elsewhere, and no text can break out."""

import json
import re
from html import escape
from importlib.resources import files

import pytest

from transformer.explore.page import SCRIPTS, STYLES, embedded_json, frame, page_html
from transformer.explore.stories import BUILT_IN

DATA = {"title": "a → b", "attentions": []}
HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "{{data}}", "\\u003c", 'a"b\\', "]]>", "\u2028",
           "\x00", "</style>", "&lt;", "學校へ", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")]


def data_of(page):
    """What the page's scripts read: the text of the element, up to the first end of a script."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script', page, flags=re.DOTALL)
    return json.loads(text)


def test_every_file_is_in_the_page():
    parts = [path for folder in (files("transformer.explore") / "page").iterdir() for path in folder.iterdir()]
    assert sorted(path.name for path in parts) == sorted(
        name.rpartition("/")[2] for name in
        ["page.html", *(f"{name}.css" for name in STYLES), *(f"{name}.js" for name in SCRIPTS),
         *(f"{name}.json" for name in BUILT_IN)])
    page = page_html(DATA)
    for path in parts:
        if path.suffix not in {".html", ".json"}:  # a story stands in the data
            assert path.read_text(encoding="utf-8") in page
    assert "{{" not in re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL)


def test_nothing_comes_from_elsewhere():
    """No address but a namespace's, no import, no reference to a file."""
    page = page_html(DATA)
    assert set(re.findall(r"\b\w+://[^\s\"'`)]*", page)) <= {"http://www.w3.org/2000/svg"}
    for pattern in (r"@import", r"\burl\((?!#|['\"]?data:)", r"\bimport\s*\(", r"^\s*import\b", r"\bfetch\(",
                    r"XMLHttpRequest", r"WebSocket", r"<script[^>]*\bsrc=", r"\beval\(", r"new Function"):
        assert not re.search(pattern, page, flags=re.MULTILINE), pattern
    assert re.findall(r"<link[^>]*>", page) == ['<link rel="icon" href="data:,">']  # else a browser asks for one


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_out(text):
    """Neither a title nor a token ends its element, and the data come back as they were."""
    data = {"title": text, "tokens": [text, f"x{text}y"], "attentions": []}
    page, plain = page_html(data), page_html(DATA)
    assert data_of(page) == data
    assert "<" not in embedded_json(data)
    for mark in ("<script", "</script", "<!--", "</style", "</title"):
        assert page.count(mark) == plain.count(mark), mark
    assert f"<title>{escape(text)}</title>" in page


def test_numbers_that_json_does_not_know_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded_json({"loss": float("nan")})


def test_a_notebook_shows_the_page_in_a_frame():
    """What the browser reads out of the attribute is the page itself."""
    page = page_html({"title": "\"><script>alert('&amp;')</script>", "attentions": []})
    shown = frame(page)
    [held] = re.findall(r'srcdoc="([^"]*)"', shown)
    for entity, character in (("&quot;", '"'), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        held = held.replace(entity, character)
    assert held == page
    assert 'sandbox="allow-scripts allow-downloads"' in shown
    assert shown.count("<") == 2  # the frame, and its end
