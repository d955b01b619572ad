"""The script of README's moving picture runs, on a small page and in a few scenes."""

import pytest
from PIL import Image

from docs.images.explorer_moving import HEIGHT, WIDTH, film, save, steps, stop
from tests.transformer.tiny import tiny_model
from transformer.data import WordTokenizer
from transformer.explore.translation import explain
from transformer.translator import Translator


@pytest.mark.slow
def test_the_moving_picture(browser, tmp_path):
    words = WordTokenizer.train(["a b c d e f g"])
    explain(Translator(tiny_model(), words, words), "a b c", "d e").to_html(tmp_path / "page.html")
    frames = film(browser, tmp_path / "page.html", (stop(0, 500), steps))
    save(frames[:3], tmp_path / "moving.webp")
    with Image.open(tmp_path / "moving.webp") as moving:
        assert (moving.n_frames, moving.size) == (3, (WIDTH, HEIGHT))
    assert 15 < len(frames) < 30  # a picture for each step
    assert len({picture.tobytes() for picture, _ in frames}) > 15
