"""A headless Firefox for the tests of the page: a small client of WebDriver BiDi, the protocol that Firefox speaks.

BiDi (https://w3c.github.io/webdriver-bidi) is JSON over a WebSocket. A command has an id, and the answer has the same
one; events come in between. Firefox needs no driver for it, as Selenium does, and none of a particular build, as
playwright does.
"""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urldefrag

from tests.explorer.browser import NoBrowserError, find_browser

NAMED = "EXPLORER_FIREFOX"  # environment: Firefox's path, where it is none of the candidates
CANDIDATES = ("firefox", "firefox-esr", "/Applications/Firefox.app/Contents/MacOS/firefox")
REMEDY = f"install Firefox (apt install firefox-esr), or name one: {NAMED}=/path/to/firefox"
STARTS_WITHIN, ANSWERS_WITHIN = 60, 120  # seconds
LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013",
        "ArrowRight": "\ue014", "ArrowDown": "\ue015"}
# The policy of a page that is broken is an event of its document; it is in no log.
WATCH_POLICY = """() => {
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) => {
        violations.push(`${event.violatedDirective} forbids ${event.blockedURI}`);
    }, true);
}"""


@contextmanager
def launch_firefox() -> "Iterator[Firefox]":
    """A headless Firefox with a profile of its own, closed at the end.

    Raises:
        NoBrowserError: there is none, it does not start, or there is nothing to drive it with.
    """
    if find_spec("websockets") is None:
        raise NoBrowserError("websockets is not installed (pip install -e '.[test]')")
    from websockets.sync.client import connect

    command = [find_browser("Firefox", CANDIDATES, NAMED), "--headless", "--no-remote", "--remote-debugging-port=0"]
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        log = Path(profile) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen([*command, "--profile", profile], stdout=output, stderr=output)
        try:
            with connect(f"{_address(process, log)}/session", max_size=None, proxy=None) as socket:
                firefox = Firefox(socket)
                yield firefox
                firefox.command("browser.close")
        finally:
            process.terminate()
            process.wait(STARTS_WITHIN)


def _address(process: subprocess.Popen, log: Path) -> str:
    """Where Firefox listens, once it says so."""
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end and process.poll() is None:
        if found := LISTENING.search(log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.1)
    raise NoBrowserError(f"Firefox does not start: {log.read_text(errors='replace')[-500:]}")


class Firefox:
    """A browser at the other end of a WebSocket."""

    def __init__(self, socket: Any):
        self.socket = socket
        self.sent = 0
        self.pages: dict[str, FirefoxPage] = {}
        self.command("session.new", capabilities={})
        self.command("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self.command("script.addPreloadScript", functionDeclaration=WATCH_POLICY)

    def command(self, method: str, **params: Any) -> Any:
        """Send a command and return its answer; events that come before it are noted."""
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=ANSWERS_WITHIN))
            if message["type"] == "event":
                self._note(message["method"], message["params"])
            elif message.get("id") == self.sent:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['error']}: {message['message']}")
                return message["result"]

    def _note(self, event: str, params: Any) -> None:
        context = params["source"].get("context") if event == "log.entryAdded" else params["context"]
        if page := self.pages.get(context):
            page.note(event, params)

    def open(self, path: Path, width: int = 1280, height: int = 800) -> "FirefoxPage":
        """The HTML file at ``path`` in a tab of its own."""
        context = self.command("browsingContext.create", type="tab")["context"]
        self.command("browsingContext.setViewport", context=context, viewport={"width": width, "height": height})
        page = self.pages[context] = FirefoxPage(self, context, path.resolve().as_uri())
        self.command("browsingContext.navigate", context=context, url=page.url, wait="complete")
        return page


class FirefoxPage:
    """A tab. Whatever a page that is whole in itself never does is added to ``problems``."""

    def __init__(self, firefox: Firefox, context: str, url: str):
        self.firefox, self.context, self.url = firefox, context, url
        self.problems: list[str] = []

    def note(self, event: str, params: Any) -> None:
        """An error in the console, or a request for anything but the file."""
        if event == "log.entryAdded":
            if params["level"] == "error":
                self.problems.append(f"an error in the console: {params['text']}")
        elif urldefrag(address := params["request"]["url"]).url != self.url and not address.startswith("data:"):
            self.problems.append(f"a request for {address}")

    def evaluate(self, expression: str, *given: Any) -> Any:
        """What an expression of ``given``, a list, comes to; a promise is awaited. JSON keeps every bit of a number."""
        body = f"async () => {{ const given = {json.dumps(given)}; return JSON.stringify(await ({expression})); }}"
        answer = self.firefox.command("script.callFunction", functionDeclaration=body, awaitPromise=True,
                                      target={"context": self.context})
        if answer["type"] == "exception":
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['text']}")
        result = answer["result"]
        return json.loads(result["value"]) if result["type"] == "string" else None

    def wait_for(self, expression: str) -> None:
        """Until the expression holds."""
        end = time.monotonic() + ANSWERS_WITHIN
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} never holds")
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """With the mouse, in the middle of the element, once that stands still within the window."""
        x, y = self.evaluate("""(async () => {
            const middle = () => {
                const {left, top, width, height} = document.querySelector(given[0]).getBoundingClientRect();
                return [Math.round(left + width / 2), Math.round(top + height / 2)];
            };
            document.querySelector(given[0]).scrollIntoView({block: "center", behavior: "instant"});
            let before, now = middle();
            do {
                before = now;
                await new Promise((later) => setTimeout(later, 100));
                now = middle();
            } while (String(before) !== String(now));
            return now;
        })()""", selector)
        self._perform("pointer", {"type": "pointerMove", "x": x, "y": y},
                      {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def press(self, *keys: str) -> None:
        """Keys by name, or the letters of a text, one after the other."""
        values = [KEYS.get(key, key) for key in keys]
        self._perform("key", *({"type": kind, "value": value} for value in values for kind in ("keyDown", "keyUp")))

    def _perform(self, device: str, *actions: Any) -> None:
        source = {"type": device, "id": device, "actions": list(actions)}
        self.firefox.command("input.performActions", context=self.context, actions=[source])

    def close(self) -> list[str]:
        """Close the tab, and return the problems that it had."""
        self.problems += self.evaluate("violations")
        self.firefox.command("browsingContext.close", context=self.context)
        return self.problems
