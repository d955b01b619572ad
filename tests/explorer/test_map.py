"""The map of the model: where its places lie, what its bars say, and how one enters a place and comes back."""

from pathlib import Path

import numpy as np
import pytest

from tests.explorer.panels import WORDS, live_explanation
from tests.transformer.tiny import tiny_model

MEASURES = Path(__file__).parent / "measures.js"
SUBLAYERS = {"encoder": ("self_attention", "feed_forward"),
             "decoder": ("self_attention", "cross_attention", "feed_forward")}


def places_of(layers, norm):
    """The places of a model in the order of its run."""
    places = []

    def add(path, kind, side, layer=None):
        places.append({"path": path, "kind": kind, "side": side, "layer": layer, "title": path})

    for side, sublayers in SUBLAYERS.items():
        add(f"{side}.embedding", "embedding", side)
        for layer in range(layers):
            for name in sublayers:
                path = f"{side}.layers.{layer}.{name}"
                sublayer = (path, "feed_forward" if name == "feed_forward" else "attention")
                normed, added = (f"{path}_residual.norm", "norm"), (f"{path}_residual", "residual")
                for place in (normed, sublayer, added) if norm == "pre" else (sublayer, added, normed):
                    add(*place, side, layer)
        if norm == "pre":
            add(f"{side}.norm", "norm", side)
    add("output", "output", "decoder")
    return places


# What of the picture lies on something else or outside: complaints.
DRAWN_WRONG = """([places, width]) => {
    const layout = mapLayout(places, width), box = document.createElement("div");
    box.append(mapPicture(layout, places));
    document.body.append(box);
    const found = [], picture = box.firstChild, all = places.map(({path}) => layout.spots.get(path));
    all.forEach((spot, n) => {
        const next = all[n + 1], right = spot.x + spot.width / 2;
        if (right > layout.width || spot.y + spot.height / 2 > spot.base) found.push(`${spot.path} is outside`);
        if (next?.row === spot.row && next.x - next.width / 2 < right) found.push(`${next.path} lies on another`);
    });
    for (const group of picture.querySelectorAll(".place")) {
        const shape = group.querySelector(".shape").getBoundingClientRect();
        for (const text of group.querySelectorAll("text")) {
            const {left, right, top, bottom} = text.getBoundingClientRect();
            if (left < shape.left || right > shape.right || top < shape.top - 2 || bottom > shape.bottom + 2) {
                found.push(`“${text.textContent}” is wider than its box`);
            }
        }
    }
    const {height} = picture.getBoundingClientRect();
    box.remove();
    return {found, width: layout.width, height};
}"""


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(("layers", "widths", "height"), [
    (0, [343, 1250], 190), (1, [343, 700, 1250], 215), (6, [957, 1250], 215),
    (2, [343, 500, 750, 950], 215), (2, [950, 1050, 1150], 190), (2, [1250, 1400], 165)])
def test_the_picture_fits_in_its_room_and_nothing_lies_on_another(opened, layers, widths, height, norm):
    for width in widths:
        drawn = opened.evaluate(DRAWN_WRONG, [places_of(layers, norm), width])
        assert drawn["found"] == []
        assert drawn["width"] <= width
        assert drawn["height"] <= height


def ways_of(layers, norm):
    """What gives its output to what."""
    ways, memory = set(), None
    for side, sublayers in SUBLAYERS.items():
        before = f"{side}.embedding"
        for layer in range(layers):
            for name in sublayers:
                path = f"{side}.layers.{layer}.{name}"
                added, normed = f"{path}_residual", f"{path}_residual.norm"
                if name == "cross_attention":
                    ways.add((memory, path))
                way_in = [(before, normed), (normed, path)] if norm == "pre" else [(before, path)]
                ways |= {*way_in, (path, added), (before, added)}
                before = added
                if norm == "post":
                    ways.add((added, normed))
                    before = normed
        if norm == "pre":
            ways.add((before, f"{side}.norm"))
            before = f"{side}.norm"
        memory = memory or before
    return ways | {(before, "output")}


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_ways_are_those_of_the_model(opened, norm):
    drawn = opened.evaluate("(places) => mapLayout(places, 1250).lines.map(({from, to}) => [from, to])",
                            places_of(2, norm))
    assert sorted(map(tuple, drawn)) == sorted(ways_of(2, norm))


# ------------------------------------------------------------------ on a live page

OUTPUTS = ("norm", "attention", "feed_forward", "_residual", "embedding", "projection")  # modules that are places


@pytest.fixture(scope="module")
def model():
    return tiny_model(num_encoder_layers=2, num_decoder_layers=2)


@pytest.fixture(scope="module")
def live_page(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("map") / "page.html"
    live_explanation(model).to_html(path)
    return path


@pytest.fixture
def live(live_page, share_page):
    return share_page(live_page, width=1440, height=900)


@pytest.fixture
def still(live_page, share_page):
    """A reader who wants no motion."""
    return share_page(live_page, width=1440, height=900, reduced_motion=True)


def place(path):
    return f"#map [data-place='{path}']"


def shares(norms):
    """Of the largest."""
    return {path: norm / max(norms.values()) for path, norm in norms.items()}


def bars(page, which):
    """By place the length of its bar, as a share of the longest."""
    return page.evaluate("""(which) => Object.fromEntries([...document.querySelectorAll(`#map .bar.${which}`)].map(
        (bar) => [bar.parentNode.dataset.place, Number(bar.getAttribute("height")) / BAR_HEIGHT]))""", which)


def focused(page):
    return page.evaluate("document.activeElement.dataset.key")


def test_the_bars_are_the_engines_norms(live, model):
    outputs = {}
    for name, module in model.named_modules():
        if name.endswith(OUTPUTS):
            module.register_forward_hook(lambda _, __, output, name=name: outputs.__setitem__(name, output))
    loss = model.loss([[*WORDS.encode("a b c"), 2]], [[*WORDS.encode("d e"), 2]])
    for output in outputs.values():
        output.retain_grad()
    loss.backward()
    outputs["output"] = outputs.pop("projection")
    for which, found in (("value", lambda output: output), ("gradient", lambda output: output.grad)):
        norms = {path: np.linalg.norm(found(output).numpy()) for path, output in outputs.items()}
        assert bars(live, which) == pytest.approx(shares(norms), rel=1e-9)


def test_by_keys_into_a_place_and_out_again(live):
    live.focus(place("output"))
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowUp", "End", "Home", "ArrowRight", "ArrowRight"):
        live.keyboard.press(key)
    assert focused(live) == "map:encoder.layers.0.self_attention"
    assert live.evaluate("page.places[explorer.state.place].path") == "output"  # the arrows only look
    live.keyboard.press("Enter")
    assert live.evaluate("page.places[explorer.state.place].path") == "encoder.layers.0.self_attention"
    assert live.locator("#map [aria-current]").get_attribute("data-place") == "encoder.layers.0.self_attention"
    assert focused(live) == "tile:" + live.evaluate("explorer.state.symbol")
    live.locator("#stage .grid td[tabindex='0']").first.focus()
    live.keyboard.press("Escape")
    assert focused(live) == "tile:" + live.evaluate("explorer.state.symbol")
    live.keyboard.press("Escape")
    assert focused(live) == "map:encoder.layers.0.self_attention"
    live.wait_for_selector(".zoom-frame", state="detached")


def test_what_is_pointed_at_is_named_with_its_numbers(live):
    live.hover(place("decoder.layers.1.cross_attention_residual"))
    assert live.inner_text("#map .map-place") == "addition of the cross-attention · decoder, layer 2"
    norms = live.evaluate("currentRun().norms.get('decoder.layers.1.cross_attention_residual')")
    shown = {which: float(live.get_attribute(f"#map .norm.{which}", "data-value")) for which in ("value", "gradient")}
    assert shown == norms
    live.mouse.move(0, 0)
    assert "output" in live.inner_text("#map .map-place")


# The places in the order in which they light up, and how many are lit when it is over.
SWEEP = """async (direction) => {
    const order = [], picture = document.querySelector("#map svg");
    new MutationObserver((changes) => changes.forEach(({target}) => {
        const {place} = target.dataset;
        if (place && target.classList.contains("arrived") && !order.includes(place)) order.push(place);
    })).observe(picture, {attributes: true, attributeFilter: ["class"], subtree: true});
    await sweepMap(direction);
    return [order, picture.querySelectorAll(".arrived, .here").length, page.places.map(({path}) => path)];
}"""


@pytest.mark.parametrize(("reader", "direction"), [("live", "backward"), ("still", "forward")])
def test_the_sweep_passes_every_place_in_the_order_of_the_run(request, reader, direction):
    order, left, places = request.getfixturevalue(reader).evaluate(SWEEP, direction)
    assert order == (places[::-1] if direction == "backward" else places)
    assert left == 0


def test_a_step_shows_how_far_each_place_moved(still):
    found = still.evaluate("""async () => {
        const before = session.parameters;
        session.step({rule: "sgd", rate: 0.5});
        const flash = flashStep(before, session.parameters);
        const shown = getComputedStyle(document.querySelector("#map .bar.moved")).visibility;
        await flash;
        return [shown, getComputedStyle(document.querySelector("#map .bar.moved")).visibility];
    }""")
    assert found == ["visible", "hidden"]
    gradients = still.evaluate("""(() => {
        session.undo();
        return [...session.run().parameterGradients].map(([name, matrix]) => [name, normOf(matrix)]);
    })()""")
    moved = dict.fromkeys(bars(still, "moved"), 0.0)  # additions have no parameters
    for name, norm in gradients:
        within = [path for path in moved if name.startswith(f"{path}.")]
        path = "output" if name.startswith("projection.") else max(within, key=len)
        moved[path] = np.hypot(moved[path], norm)
    assert bars(still, "moved") == pytest.approx(shares(moved), rel=1e-6)


@pytest.mark.parametrize("dark", [False, True])
def test_it_can_be_read(live_page, open_page, dark):
    page = open_page(live_page, width=1440, height=900, dark=dark)
    script = {"expression": MEASURES.read_text(encoding="utf-8")}  # the page's policy refuses its element
    page.context.new_cdp_session(page).send("Runtime.evaluate", script)
    assert page.evaluate("poorContrast(4.5).filter((text) => text.in.includes('map'))") == []


def test_it_fits_on_a_phone(live_page, open_page):
    page = open_page(live_page, width=390, height=844)
    for part in ("#map", "#map .map-scroll"):
        assert page.eval_on_selector(part, "(element) => element.scrollWidth <= element.clientWidth")


def test_without_a_live_model_there_is_no_map(opened):
    assert opened.locator("#map").is_hidden()
