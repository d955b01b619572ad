"""What the tests of the page stand on: the browser is found, and a page that misbehaves does not pass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.explorer.browser import CANDIDATES, NAMED, REQUIRED, watched_page

ROOT = Path(__file__).parents[2]
ON_A_MAC = any(Path(name).exists() for name in CANDIDATES if name.startswith("/"))
without_a_mac = pytest.mark.skipif(ON_A_MAC, reason="this machine's browser is found without PATH")


def run_without_a_browser(tmp_path, test, **environment):
    """pytest on one browser test, where PATH holds no browser: its exit status and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{test}"]
    kept = {name: value for name, value in os.environ.items() if name not in (NAMED, REQUIRED) and "PYTEST" not in name}
    done = subprocess.run(command, cwd=ROOT, env={**kept, "PATH": str(tmp_path), **environment}, capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout


@without_a_mac
def test_where_a_browser_is_required_its_absence_fails(tmp_path):
    status, printed = run_without_a_browser(tmp_path, test_a_good_page_has_no_problem.__name__, **{REQUIRED: "1"})
    assert status == 1
    assert "no browser: no Chromium or Chrome found" in printed
    assert printed.splitlines()[-1].startswith("1 error in ")


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
        ("<script>throw new RangeError('thrown')</script>", "an error that the page did not catch: RangeError: thrown"),
        ("<script>Promise.reject(new Error('late'))</script>", "an error that the page did not catch: Error: late"),
        ("<script src='more.js'></script>", "a request for file:///"),
        ("<link rel='stylesheet' href='https://example.org/style.css'>", "a request for https://example.org/style.css"),
        ("<script>fetch('http://127.0.0.1:9/').catch(() => 0)</script>", "a request for http://127.0.0.1:9/"),
        ("<script>new WebSocket('ws://127.0.0.1:9/')</script>", "a connection to ws://127.0.0.1:9/"),
        ("<iframe src='about:srcdoc' srcdoc='<script>nowhere()</script>'></iframe>", "nowhere is not defined"),
    ],
)
def test_a_page_that_misbehaves(browser, tmp_path, body, problem):
    problems = problems_of(browser, tmp_path, body)
    assert any(problem in found for found in problems), problems
