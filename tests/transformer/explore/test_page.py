"""What is put into the page: no text breaks out, and it comes back as it was."""

import json
import re
from html import escape

import pytest

from transformer.explore.page import embedded_json, frame, page_html

DATA = {"title": "a → b", "attentions": []}
HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "{{data}}", "\\u003c", 'a"b\\', "\u2028", "</style>",
           "&lt;", "學校へ"]


def data_of(page):
    """What the page's scripts read: the text of the element, up to the first end of a script."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script', page, flags=re.DOTALL)
    return json.loads(text)


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
