"""Draws the pictures of docs/explorer.md, explorer_*.png beside this file, from the run of `make demo`:

    python -m docs.images.explorer runs/demo        # from the repository's root

It needs a Chromium or Chrome, playwright (the extra `test`) and Pillow (which the extra `plot` brings).
"""

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from PIL import Image

from tests.explorer.browser import launch, watched_page
from transformer.explore.translation import explain
from transformer.translator import Translator

if TYPE_CHECKING:
    from playwright.sync_api import Page

SENTENCE, ASKED = "le 1er septembre 2021", "2021-08-01"  # as in transformer/cli/demo.py
CROSS = "place: 'decoder.layers.1.cross_attention', symbol: 'dS', panel: 'softmax'"
# Of each picture: what is done, and the first and the last of the elements that it shows; without any, the window.
PICTURES = {
    "explorer_opening.png": ("", []),
    "explorer_strip.png": (f"explorer.setState({{{CROSS}, story: null}})", ["#strip", "#stage"]),
    "explorer_softmax.png": ("", ["#panels", "#panels"]),
    "explorer_steps.png": ("explorer.setState({panel: 'steps'}), takeSteps(20)", ["#panels", "#panels"]),
    "explorer_broken.png": ("backToTrained(), explorer.setState({broken: 'rowsum'})", ["#breadcrumb", "#stage"]),
}
# Where they are on the page, which is seen from its top, without the caption that floats over it.
CLIP = """([first, last]) => {
  scrollTo(0, 0);
  document.getElementById("story").style.display = "none";
  const [{top}, {bottom}] = [first, last].map((selector) => document.querySelector(selector).getBoundingClientRect());
  return {x: 0, y: top - 8, width: innerWidth, height: bottom - top + 16};
}"""


def draw(run: str, folder: Path) -> None:
    """Write the pictures of the run's explorer into the folder, in palettes of 256 colours."""
    with TemporaryDirectory() as scratch, launch() as browser:
        path = Path(scratch) / "page.html"
        explain(Translator.load(run), SENTENCE, ASKED, folder=run).to_html(path)
        problems: list[str] = []
        page = watched_page(browser, path, problems, reduced_motion=True)
        for name, (change, shown) in PICTURES.items():
            page.evaluate(change)
            seen = Image.open(io.BytesIO(picture(page, shown))).convert("RGB")
            # The rarest colours count here: they are those of the data.
            palette = seen.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=8, dither=Image.Dither.NONE)
            palette.save(folder / name, optimize=True)
        if problems:
            raise RuntimeError(f"the page has problems: {'; '.join(problems)}")


def picture(page: "Page", shown: list[str]) -> bytes:
    """The elements from the first to the last, or the window if there are none, as PNG."""
    return page.screenshot(full_page=True, clip=page.evaluate(CLIP, shown)) if shown else page.screenshot()


if __name__ == "__main__":
    draw(sys.argv[1], Path(__file__).parent)
