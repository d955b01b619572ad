"""Draws explorer_strip.png and explorer_broken.png, beside this file, for README.md, from the run of `make demo`:

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

SENTENCE, ASKED = "le 1er septembre 2021", "2021-08-01"  # as in examples/translate_dates.py
# The page opens at the last cross-attention. What is chosen there: the largest gradient of a score, in the softmax's
# backward; and the same with the mean forgotten, which makes everything before it wrong.
PICTURES = {
    "explorer_strip.png": "explorer.setState({symbol: 'dS'}); explorer.setState({cell: telling().cell});",
    "explorer_broken.png": "explorer.setState({symbol: 'dS', cell: null, broken: 'rowsum'});",
}


def draw(run: str, folder: Path) -> None:
    """Write the pictures of the run's explorer into the folder, 1280×800 each, in a palette of 256 colours."""
    with TemporaryDirectory() as scratch, launch() as browser:
        path = Path(scratch) / "page.html"
        explain(Translator.load(run), SENTENCE, ASKED, folder=run).to_html(path)
        problems: list[str] = []
        page = watched_page(browser, path, problems, reduced_motion=True)
        for name, change in PICTURES.items():
            page.evaluate(change)
            seen = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            # The rarest colours count here: they are those of the data.
            palette = seen.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=8, dither=Image.Dither.NONE)
            palette.save(folder / name, optimize=True)
        if problems:
            raise RuntimeError(f"the page has problems: {'; '.join(problems)}")


if __name__ == "__main__":
    draw(sys.argv[1], Path(__file__).parent)
