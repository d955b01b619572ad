"""Draws the pictures of docs/explorer.md, explorer_*.png beside this file, from the run of `make demo`:

    python -m docs.images.explorer runs/demo        # from the repository's root

It needs a Chromium or Chrome, playwright (the extra `test`) and Pillow (which the extra `plot` brings).
"""

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from tests.explorer.browser import launch, watched_page
from transformer.explore.translation import explain
from transformer.translator import Translator

SENTENCE, ASKED = "le 1er septembre 2021", "2021-08-01"  # as in transformer/cli/demo.py
CROSS = "place: 'decoder.layers.1.cross_attention', symbol: 'dS'"
# Of each picture: what is done, and the element that it shows, or "" for the window.
PICTURES = {
    "explorer_opening.png": ("", ""),
    "explorer_strip.png": (f"explorer.setState({{{CROSS}, story: null}})", ""),
    "explorer_softmax.png": ("explorer.setState({panel: 'softmax'})", "#side"),
    "explorer_steps.png": ("explorer.setState({panel: 'steps'}), takeSteps(20)", "#side"),
    "explorer_broken.png": (
        "backToTrained(), setState({broken: 'rowsum', panel: 'checks'}), measure(currentView(), redraw)", ""),
}


def draw(run: str, folder: Path) -> None:
    """Write the pictures of the run's explorer into the folder, in palettes of 256 colours."""
    with TemporaryDirectory() as scratch, launch() as browser:
        path = Path(scratch) / "page.html"
        explain(Translator.load(run), SENTENCE, ASKED).to_html(path)
        problems: list[str] = []
        page = watched_page(browser, path, problems, reduced_motion=True)
        for name, (change, shown) in PICTURES.items():
            page.evaluate(change)
            seen = Image.open(io.BytesIO((page.locator(shown) if shown else page).screenshot())).convert("RGB")
            # The rarest colours count here: they are those of the data.
            palette = seen.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=8, dither=Image.Dither.NONE)
            palette.save(folder / name, optimize=True)
        if problems:
            raise RuntimeError(f"the page has problems: {'; '.join(problems)}")


if __name__ == "__main__":
    draw(sys.argv[1], Path(__file__).parent)
