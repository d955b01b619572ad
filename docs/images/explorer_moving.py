"""Draws explorer.webp, the moving picture at the top of README.md, beside this file, from the run of `make demo`:

    python -m docs.images.explorer_moving runs/demo        # from the repository's root

It drives the page in a Chromium or Chrome with playwright (the extra `test`), and needs Pillow (from the extra
`plot`). The page's clock stands still but for what a scene lets pass: the picture does not depend on the machine.
"""

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from docs.images.explorer import ASKED, SENTENCE
from tests.explorer.browser import launch, watched_page
from transformer.explore.translation import explain
from transformer.translator import Translator

WIDTH, HEIGHT = 1120, 700
DRAWN = 200  # milliseconds that the browser takes to draw: its own time, and not the page's
Frame = tuple[Image.Image, int]  # and for how many milliseconds it is seen


def stop(number: int, seen: int) -> Callable[[Any], Iterator[Frame]]:
    """A stop of the first story, counted from 0."""

    def scene(page: Any) -> Iterator[Frame]:
        page.evaluate("(number) => enterStop(tellableStories()[0].id, number)", number)
        page.clock.run_for(2000)
        page.wait_for_timeout(DRAWN)
        yield seen_now(page), seen

    return scene


def sweep(page: Any) -> Iterator[Frame]:
    """The gradient runs backward through the map."""
    page.evaluate("enterStop(tellableStories()[0].id, 3)")
    page.wait_for_timeout(DRAWN)
    for _ in range(21):
        page.clock.run_for(150)
        yield seen_now(page), 100
    page.clock.run_for(1000)
    yield seen_now(page), 700


def steps(page: Any) -> Iterator[Frame]:
    """Twenty steps, and the loss falls."""
    page.evaluate("leaveStory()")
    page.evaluate("explorer.setState({place: 'output', symbol: 'P', panel: 'steps'})")
    page.click("[data-key='steps:twenty']")
    while page.evaluate("isStepping()"):
        yield seen_now(page), 150
        page.clock.run_for(17)  # a frame of the page: one step
    yield seen_now(page), 1200
    page.clock.run_for(2000)
    yield seen_now(page), 1500


SCENES = (stop(0, 2400), stop(1, 1600), stop(2, 1600), sweep, stop(4, 1600), stop(6, 2200), stop(7, 2200), steps)


def seen_now(page: Any) -> Image.Image:
    """What the window shows."""
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def film(browser: Any, path: Path, scenes: tuple[Callable[[Any], Iterator[Frame]], ...] = SCENES) -> list[Frame]:
    """The frames of the scenes, on the page at `path`."""
    problems: list[str] = []
    page = watched_page(browser, path, problems, width=WIDTH, height=HEIGHT,
                        before=lambda page: page.clock.install())
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    frames = [frame for scene in scenes for frame in scene(page)]
    page.context.close()
    if problems:
        raise RuntimeError(f"the page has problems: {'; '.join(problems)}")
    return frames


def save(frames: list[Frame], path: Path) -> None:
    """An animated WebP that begins anew when it is over."""
    (first, *others), times = [picture for picture, _ in frames], [time for _, time in frames]
    first.save(path, save_all=True, append_images=others, duration=times, loop=0, quality=60, method=6,
               minimize_size=True)


def draw(run: str, folder: Path) -> None:
    """Write the moving picture of the run's explorer into the folder."""
    with TemporaryDirectory() as scratch, launch() as browser:
        path = Path(scratch) / "page.html"
        explain(Translator.load(run), SENTENCE, ASKED).to_html(path)
        save(film(browser, path), folder / "explorer.webp")


if __name__ == "__main__":
    draw(sys.argv[1], Path(__file__).parent)
