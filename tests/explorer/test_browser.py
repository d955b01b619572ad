"""What the tests of the page stand on: a page that misbehaves does not pass."""

import pytest

from tests.explorer.browser import watched_page


def problems_of(browser, tmp_path, body):
    path = tmp_path / "a page.html"
    path.write_text(f"<!doctype html><title>a page</title>{body}", encoding="utf-8")
    problems = []
    page = watched_page(browser, path, problems)
    page.wait_for_timeout(100)
    page.context.close()
    return problems


def test_a_good_page_has_no_problem(browser, tmp_path):
    picture = "data:image/gif;base64,R0lGODlhAQABAAAAACw="
    body = f"<img src='{picture}' alt=''><script>console.log('hello'); location.hash = 'here'</script>"
    assert problems_of(browser, tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<script>console.error('wrong', 3)</script>", "an error in the console: wrong 3"),
        ("<script>Promise.reject(new Error('late'))</script>", "an error that the page did not catch: Error: late"),
        ("<link rel='stylesheet' href='https://example.org/style.css'>", "a request for https://example.org/style.css"),
        ("<script>new WebSocket('ws://127.0.0.1:9/')</script>", "a connection to ws://127.0.0.1:9/"),
    ],
)
def test_a_page_that_misbehaves(browser, tmp_path, body, problem):
    problems = problems_of(browser, tmp_path, body)
    assert any(problem in found for found in problems), problems
