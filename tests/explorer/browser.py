"""The browser that the tests of the page drive: a Chromium or Chrome that the machine has. None is ever downloaded."""

import os
import shutil
from contextlib import contextmanager
from urllib.parse import urldefrag

NAMED = "EXPLORER_BROWSER"  # environment: the browser's path, where it is none of the candidates
REQUIRED = "EXPLORER_BROWSER_REQUIRED"  # environment: 1 where a run without a browser is a failure (.ci/run)
CANDIDATES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
# No traffic of the browser's own, and no dialogue of a first run.
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NOT_RUN = "no browser"  # how the reason of every skipped browser test begins
REMEDY = f"install Chromium or Chrome (apt install chromium), or name one: {NAMED}=/path/to/chrome"


class NoBrowserError(Exception):
    """There is no browser here, or none that can be driven; the message says why."""


@contextmanager
def launch():
    """A headless browser, the one that the environment names or the first candidate there is; closed at the end.

    While it is open, playwright's event loop counts as running in this thread: asyncio.run() is refused there.

    Raises:
        NoBrowserError: there is none, or playwright cannot drive it.
    """
    program = os.environ.get(NAMED) or next(filter(None, map(shutil.which, CANDIDATES)), None)
    if program is None:
        raise NoBrowserError("no Chromium or Chrome found")
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise NoBrowserError("playwright is not installed (pip install -e '.[test]')") from error
    # Only root needs to do without the sandbox, which refuses to run as root.
    sandbox = not hasattr(os, "geteuid") or os.geteuid() != 0
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=sandbox, args=FLAGS)
        except Error as error:
            reason = str(error).strip().partition("\n")[0]
            raise NoBrowserError(f"{program} does not start under playwright ({reason})") from error
        with browser:
            yield browser


def watched_page(browser, path, problems, width=1280, height=800,
                 dark=False, reduced_motion=False, before=None,
                 **options):
    """The HTML file at ``path``, opened from disk in a browser that is offline and remembers nothing.

    Whatever a page that is whole in itself never does is added to ``problems``, until the page is closed: an error that
    it throws or writes to the console, and a request for anything but the file. ``before`` is called with
    the page before it opens the file. Further options are those of playwright's ``Browser.new_context``.
    """
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True,
                                  color_scheme="dark" if dark else "light",
                                  reduced_motion="reduce" if reduced_motion else "no-preference", **options)
    url = path.resolve().as_uri()
    context.on("request", lambda request: urldefrag(request.url).url == url or problems.append(
        f"a request for {request.url}") if not request.url.startswith("blob:") else None)
    page = context.new_page()
    page.on("websocket", lambda socket: problems.append(f"a connection to {socket.url}"))
    page.on("pageerror", lambda error: problems.append(f"an error that the page did not catch: {error.stack or error}"))
    page.on("console", lambda message: message.type != "error" or problems.append(
        f"an error in the console: {message.text}"))
    page.on("crash", lambda _: problems.append("the page crashed"))
    if before is not None:
        before(page)
    page.goto(url)
    return page
