"""How the page looks: its colours, on a narrow screen, and in the dark."""

import numpy as np
import pytest

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


# What the number of a step lies on, of the symbols, names, pictures and other numbers of the strip.
COVERED = """() => {
    const boxOf = (element) => {
        if (!element.matches(".tile-symbol")) return element.getBoundingClientRect();
        const letters = document.createRange();
        letters.selectNode(element.firstChild);
        return letters.getBoundingClientRect();
    };
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
    const others = [...document.querySelectorAll(".tile-symbol, .tile-name, .thumbnail, .tile-step")];
    return [...document.querySelectorAll(".tile-step")].flatMap((number) => others
        .filter((other) => other !== number && meet(boxOf(number), boxOf(other)))
        .map((other) => `${number.textContent} on ${other.className} of ${other.closest(".tile").dataset.symbol}`));
}"""
OUTSIDE = """[...document.querySelectorAll(".tile:not(.tall) .tile-step")]
    .filter((number) => number.getBoundingClientRect().right > number.closest(".tile").getBoundingClientRect().right)
    .map((number) => number.textContent)"""


@pytest.mark.parametrize("width", [1280, 390])
def test_the_numbers_of_the_steps_cover_nothing(share_page, explorer_page, width):
    page = share_page(explorer_page, width=width)
    for broken in (None, "batch"):
        choose(page, attention=2, broken=broken)
        assert page.evaluate(COVERED) == []
        assert page.evaluate(OUTSIDE) == []


def test_numbers_stand_clear_of_the_stripes(page):
    choose(page, attention=1, symbol="dA")
    masked = page.locator("#stage .grid[data-name=dA] td.masked")
    assert masked.count() == masked.locator("span").count() > 0
    for text in masked.locator("span").all():
        behind, own = text.evaluate("""one => [one.parentElement, one].map((part) => getComputedStyle(part))
            .map(({backgroundColor}) => backgroundColor)""")
        assert own == behind
        assert text.evaluate("one => getComputedStyle(one).backgroundImage") == "none"


def test_what_is_rounded_to_zero_is_pale(page):
    page.evaluate("""document.querySelector("#stage .equation")
        .append(grid(new Matrix(1, 3, new Float64Array([1, 0.001, 0])), {name: "few"}))""")
    few = page.locator("#stage .grid[data-name=few] td.cell")
    assert few.all_inner_texts() == ["1.00", "0.00", "0"]
    colours = few.evaluate_all("all => all.map((one) => getComputedStyle(one).color)")
    soft = page.evaluate("getComputedStyle(document.querySelector('#stage .place')).color")
    assert [colour == soft for colour in colours] == [False, True, False]


def test_the_page_says_what_it_is_and_what_its_signs_mean(page):
    assert "press ←" in page.locator(".intro").inner_text()
    choose(page, attention=1)
    key = page.locator("#key")
    for part in ("dZ = ∂L/∂Z", "root of the sum of squares", "masked", "weights", "values", "gradients"):
        assert part in key.inner_text()
    light = key.locator(".legend-bar").first.get_attribute("style")
    choose(page, theme="dark")
    assert key.locator(".legend-bar").first.get_attribute("style") != light


def test_the_strip_begins_high_on_a_narrow_page(share_page, explorer_page):
    page = share_page(explorer_page, width=390, height=800)
    assert page.evaluate("document.querySelector('#strip').getBoundingClientRect().top") < 400


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
