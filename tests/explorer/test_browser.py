"""What the tests of the page stand on: the browser is found, and a page that misbehaves does not pass."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.explorer.browser import CANDIDATES, NAMED, REQUIRED, NoBrowserError, find_browser, watched_page

ROOT = Path(__file__).parents[2]
ON_A_MAC = any(Path(name).exists() for name in CANDIDATES if name.startswith("/"))
without_a_mac = pytest.mark.skipif(ON_A_MAC, reason="this machine's browser is found without PATH")


def program(folder, name):
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_browser_on_the_path_is_found(tmp_path):
    chrome = program(tmp_path, "google-chrome")
    assert find_browser({"PATH": str(tmp_path)}) == chrome
    chromium = program(tmp_path, "chromium")
    assert find_browser({"PATH": str(tmp_path)}) == chromium


def test_the_browser_that_the_environment_names_comes_first(tmp_path):
    program(tmp_path, "chromium")
    mine = program(tmp_path, "mine")
    assert find_browser({"PATH": str(tmp_path), NAMED: mine}) == mine
    with pytest.raises(ValueError, match=f"{NAMED}=/no/such/browser is no program"):
        find_browser({"PATH": str(tmp_path), NAMED: "/no/such/browser"})


@without_a_mac
def test_no_browser(tmp_path):
    with pytest.raises(NoBrowserError, match="no Chromium or Chrome found"):
        find_browser({"PATH": str(tmp_path)})


def run_without_a_browser(tmp_path, test, **environment):
    """pytest on one browser test, where PATH holds no browser: its exit status and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{test}"]
    kept = {name: value for name, value in os.environ.items() if name not in (NAMED, REQUIRED) and "PYTEST" not in name}
    done = subprocess.run(command, cwd=ROOT, env={**kept, "PATH": str(tmp_path), **environment}, capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout


@without_a_mac
def test_a_run_without_a_browser_says_so_in_one_line(tmp_path):
    status, printed = run_without_a_browser(tmp_path, test_a_good_page_has_no_problem.__name__)
    assert status == 0
    *_, said, closing = printed.splitlines()
    assert said == ("1 browser test did not run: no Chromium or Chrome found; install Chromium or Chrome (apt install "
                    "chromium), or name one: EXPLORER_BROWSER=/path/to/chrome")
    assert closing.startswith("1 skipped in ")


@without_a_mac
def test_where_a_browser_is_required_its_absence_fails(tmp_path):
    status, printed = run_without_a_browser(tmp_path, test_a_good_page_has_no_problem.__name__, **{REQUIRED: "1"})
    assert status == 1
    assert "no browser: no Chromium or Chrome found" in printed
    assert printed.splitlines()[-1].startswith("1 error in ")


def test_a_driver_that_does_not_run_skips_the_tests(tmp_path):
    status, printed = run_without_a_browser(tmp_path, test_a_good_page_has_no_problem.__name__,
                                            **{NAMED: sys.executable, "PLAYWRIGHT_NODEJS_PATH": shutil.which("false")})
    assert status == 0
    assert "1 browser test did not run: playwright's driver does not run here" in printed


def test_a_program_that_is_no_browser_skips_the_tests(tmp_path):
    status, printed = run_without_a_browser(tmp_path, test_a_good_page_has_no_problem.__name__,
                                            **{NAMED: shutil.which("false")})
    assert status == 0
    assert "false does not start under playwright" in printed


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


def test_the_page_is_opened_as_asked(open_page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<!doctype html><meta name='viewport' content='width=device-width'><title>a page</title>")
    page = open_page(path, width=390, height=700, dark=True, reduced_motion=True)
    assert page.evaluate("[innerWidth, innerHeight]") == [390, 700]
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
    page = open_page(path)
    assert page.evaluate("[innerWidth, innerHeight]") == [1280, 800]
    assert not page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert not page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
