"""How the page looks: its colours, on a narrow screen, and in the dark."""

import numpy as np

from tests.explorer.application.driver import choose, matrix, symbols_of_tiles


def test_one_scale_for_all_gradients(page):
    choose(page, symbol="dS")
    own = page.locator("#stage .grid[data-name=dS] .legend").inner_text()
    page.get_by_label("One colour scale for all gradients").check()
    assert page.locator("#stage .grid[data-name=dS] .legend").inner_text() != own
    largest = max(np.abs(matrix(page, symbol)).max() for symbol in symbols_of_tiles(page, ".backward .tile"))
    legends = page.locator("#stage .grid .legend").all_inner_texts()
    for symbol in ("dV", "dY"):
        choose(page, symbol=symbol)
        legends += page.locator(f"#stage .grid[data-name={symbol}] .legend").all_inner_texts()
    assert len(set(legends)) == 1
    assert legends[0].split()[-1] == page.evaluate("(value) => formatNumber(value, 2)", largest)


def test_the_colours_of_weights_have_one_hue_and_a_fixed_scale(page):
    """A weight of 0.5 has one colour everywhere; gradients are blue or orange, and as dark below 0 as above."""
    assert page.evaluate("paint('weight', 0.5, 0.5) === paint('weight', 0.5, 1)")
    assert page.evaluate("paint('gradient', 0.5, 0.5) === paint('gradient', 2, 2)")
    for theme in ("light", "dark"):
        shades = [page.evaluate("([value, theme]) => paintRgb('gradient', value, 1, theme)", [value, theme])
                  for value in (-1, -0.5, 0, 0.5, 1)]
        assert all(rgb[2] > rgb[0] for rgb in shades[:2])  # negative: blue
        assert all(rgb[0] > rgb[2] for rgb in shades[3:])  # positive: orange
        light = page.evaluate("(shades) => shades.map(luminance)", shades)
        assert abs(light[0] - light[4]) < 0.12
        assert abs(light[1] - light[3]) < 0.12




def test_a_narrow_page_keeps_its_width_and_shows_the_chosen_tile(open_page, explorer_page):
    page = open_page(explorer_page, width=390, height=844, reduced_motion=True)
    for symbol in ("dY", "dV", "dX", "Q", "C"):
        choose(page, symbol=symbol, cell={"row": 1, "col": 1})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        box = page.locator(".tile[aria-current]").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_dark_redraws_the_pictures(page):
    light = page.evaluate("document.querySelector('.tile[data-symbol=A] canvas').toDataURL()")
    page.get_by_label("Theme").select_option("dark")
    assert page.evaluate("document.querySelector('.tile[data-symbol=A] canvas').toDataURL()") != light
    page.get_by_label("Theme").select_option("light")
    assert page.evaluate("document.querySelector('.tile[data-symbol=A] canvas').toDataURL()") == light


def test_a_system_that_turns_dark_turns_the_page(page):
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground), page.evaluate("paint('gradient', 0, 1)")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) != light[0]
    assert page.evaluate("paint('gradient', 0, 1)") != light[1]
    page.emulate_media(color_scheme="light")
