"""The lessons' code in the reader's browser: what the site takes along, the page's buttons, and Python itself.

What needs Pyodide runs where the environment variable PYODIDE names a folder with its release, as
``python -m docs.site.browser.fetch FOLDER`` makes it. The page is tested without, too, with a worker that pretends.
"""

import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest

from docs.site import lessons
from docs.site.browser import fetch, install, release, wheels
from examples.lessons.story import cells
from tests.site.pages import serve, write_page

ROOT = Path(__file__).parents[2]
PYODIDE = os.environ.get("PYODIDE")
needs_pyodide = pytest.mark.skipif(not PYODIDE, reason="PYODIDE names no folder with Pyodide: "
                                                       "python -m docs.site.browser.fetch FOLDER makes one")
SCRIPTS = [path.name for path in lessons.scripts()]

# --- What the site takes along ------------------------------------------------------------------------------


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like that of a release, with texts for files, and release.json that names them."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    depends = {"numpy": [], "scipy": ["numpy", "blas"], "blas": [], "matplotlib": ["numpy"], "threadpoolctl": [],
               "pandas": ["numpy"]}
    packages = {}
    for name, needs in depends.items():
        (folder / f"{name}.whl").write_text(name, encoding="utf-8")
        packages[name] = {"name": name, "file_name": f"{name}.whl", "sha256": release.digest(name.encode()),
                          "imports": [name], "depends": needs}
    for name in release.CORE:
        (folder / name).write_text(name, encoding="utf-8")
    lock = {"info": {"version": "0.1.2"}, "packages": packages}
    (folder / release.LOCK).write_text(json.dumps(lock), encoding="utf-8")
    monkeypatch.setattr(release, "RELEASE", tmp_path / "release.json")
    release.RELEASE.write_text(json.dumps(release.pin(folder)), encoding="utf-8")
    return folder


def test_the_site_gets_what_the_lessons_need_and_what_that_needs(distribution, tmp_path):
    install.install(distribution, tmp_path / "site")
    target = tmp_path / "site" / install.PYODIDE
    packages = json.loads((target / release.LOCK).read_text(encoding="utf-8"))["packages"]
    assert {"numpy", "scipy", "blas", "minigrad", "transformer"} <= packages.keys()
    assert "pandas" not in packages
    for entry in packages.values():
        assert release.digest((target / entry["file_name"]).read_bytes()) == entry["sha256"]
        assert set(entry["depends"]) <= packages.keys()
    assert all((target / name).is_file() for name in release.CORE)


@pytest.mark.parametrize("name", ["pyodide.asm.wasm", "blas.whl"])
def test_a_file_of_another_release_is_refused(name, distribution, tmp_path):
    (distribution / name).write_text("another", encoding="utf-8")
    with pytest.raises(release.WrongFileError, match=re.escape(name)):
        install.install(distribution, tmp_path / "site")
    (distribution / name).unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(name)):
        install.install(distribution, tmp_path / "site")
    assert not (tmp_path / "site" / install.PYODIDE).exists()


def test_only_what_is_missing_is_fetched_and_nothing_wrong_is_kept(distribution):
    (distribution / "scipy.whl").unlink()
    (distribution / "blas.whl").write_text("half a fi", encoding="utf-8")
    asked = []

    def get(address: str) -> bytes:
        asked.append(address)
        return address.rpartition("/")[2].removesuffix(".whl").encode()

    assert sorted(fetch.fetch(distribution, get)) == ["blas.whl", "scipy.whl"]
    assert all("/v0.1.2/" in address for address in asked)
    assert fetch.fetch(distribution, get) == []
    (distribution / "scipy.whl").unlink()
    with pytest.raises(release.WrongFileError, match=r"scipy\.whl"):
        fetch.fetch(distribution, lambda address: b"something else")
    assert not (distribution / "scipy.whl").exists()


# Without what a web page's Python does not have.
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(["safetensors", "tqdm", "click", "pygraphviz", "tokenizers", "fcntl",
                                  "_posixsubprocess", "resource"]))
import check, minigrad, transformer
print(check.__file__, minigrad.__file__, transformer.__file__)
"""


def test_the_wheels_of_our_packages_unpack_to_what_can_be_imported(tmp_path):
    for entry, content in install.own_wheels().values():
        (tmp_path / entry["file_name"]).write_bytes(content)
        zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path / "unpacked")
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(tmp_path / "unpacked")}, check=False)
    assert done.returncode == 0, done.stderr
    assert all(Path(file).is_relative_to(tmp_path) for file in done.stdout.split())
    page = {path.relative_to(ROOT) for path in (ROOT / "transformer/explore/page").rglob("*.js")}
    assert page
    assert all((tmp_path / "unpacked" / file).is_file() for file in page)


def test_of_an_installed_distribution_a_wheel_takes_what_lies_in_site_packages(tmp_path):
    about = tmp_path / "a_font-1.0.dist-info"
    (tmp_path / "a_font").mkdir()
    about.mkdir()
    (tmp_path / "a_font/__init__.py").write_text("", encoding="utf-8")
    (about / "RECORD").write_text("a_font/__init__.py,,\na_font/__pycache__/__init__.cpython-312.pyc,,\n"
                                  "../../bin/font,,\na_font-1.0.dist-info/RECORD,,\n", encoding="utf-8")
    assert wheels.of_distribution(PathDistribution(about)) == {"a_font/__init__.py": b""}


# --- A cell -------------------------------------------------------------------------------------------------


@pytest.fixture
def run_cell(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, Any]]]:
    """``run_cell(source)``: what it sends; the cells share their names."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # the cells have one of their own
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.syspath_prepend(install.PAGE)
    sent: list[tuple[str, Any]] = []
    running = importlib.import_module("run_cells").Cells(lambda kind, content, width: sent.append((kind, content)))

    def run(source: str, number: int = 1) -> list[tuple[str, Any]]:
        sent.clear()
        running.run(source, number)
        return list(sent)

    return run


def test_a_cell_shows_what_it_prints_and_its_last_value(run_cell):
    assert run_cell("import sys\nx = 2\nprint('a')\nprint('b', file=sys.stderr)\nx + 1") == [
        ("out", "a\n"), ("err", "b\n"), ("value", "3")]
    assert run_cell("x") == [("value", "2")]
    assert run_cell("x = 5") == run_cell("None") == run_cell("") == []


def test_an_error_is_told_from_the_cells_line_on_and_ends_neither_the_page_nor_the_names(run_cell):
    run_cell("def divide(a):\n    return a / 0", 1)
    [(printed, _), (kind, text)] = run_cell("kept = 1\nprint('x')\ndivide(3)", 2)
    assert (printed, kind) == ("out", "error")
    assert re.findall(r"<cell (\d)>\", line (\d)", text) == [("2", "3"), ("1", "2")]
    assert "run_cells" not in text
    assert "return a / 0" in text
    assert text.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert run_cell("kept") == [("value", "1")]
    assert run_cell("raise SystemExit(3)")[0][0] == "error"
    [(kind, text)] = run_cell("a = (1")
    assert kind == "error"
    assert "run_cells" not in text
    assert run_cell("import no_such.part")[-1] == ("missing", "no_such")


def test_endless_output_is_cut(run_cell):
    text = "".join(content for _, content in run_cell("for _ in range(100):\n    print('a' * 10_000)"))
    assert 200_000 < len(text) < 200_200
    assert text.endswith("left out\n")


def test_figures_are_pictures_however_they_are_made(run_cell):
    pytest.importorskip("matplotlib")
    made = "from matplotlib.figure import Figure\nfigure = Figure((2, 1))\nfigure.add_subplot()\nfigure"
    opened = "from matplotlib import pyplot as plt\nfigure, axes = plt.subplots()\n"
    for source in (made, opened, opened + "figure"):
        [(kind, content)] = run_cell(source)
        assert kind == "image"
        assert content.startswith(b"\x89PNG")


def test_a_film_is_shown_by_the_cell_that_writes_it(run_cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/lessons").mkdir(parents=True)
    film = "from pathlib import Path\nwritten = Path('runs/lessons/a.gif').write_bytes(b'GIF89a')"
    assert run_cell(film) == [("image", b"GIF89a")]
    assert run_cell("written = None") == []


# --- The page -----------------------------------------------------------------------------------------------


class Visit:
    """A page that is open, with words for what a reader does."""

    def __init__(self, page: Any, asked: list[str]) -> None:
        self.page, self.asked = page, asked
        page.set_default_timeout(10_000)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def wait(self, number: int, pattern: str, seconds: float = 10) -> str:
        """The state of a cell, once it fits the pattern."""
        self.page.wait_for_function(
            "([n, pattern]) => new RegExp(pattern).test(document.querySelectorAll('.cell-state')[n].textContent)",
            arg=[number - 1, pattern], timeout=1000 * seconds)
        return self.page.locator(".cell-state").nth(number - 1).inner_text()

    def output(self, number: int) -> str:
        """The words that stand under a cell."""
        return self.page.locator("div.cell").nth(number - 1).locator(".cell_output:visible").inner_text().rstrip("\n")


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """``visit(site)`` opens index.html of a folder over HTTP; what a page should never do fails the test."""
    problems: list[str] = []
    with ExitStack() as stack:

        def open_it(site: Path, **options: Any) -> Visit:
            address, asked = stack.enter_context(serve(site))
            context = browser.new_context(**options)
            stack.callback(context.close)
            own = (address, "blob:", "data:")
            context.on("request", lambda request: request.url.startswith(own) or problems.append(
                f"a request for {request.url}"))
            page = context.new_page()
            page.on("pageerror", lambda error: problems.append(f"an error that the page did not catch: {error}"))
            page.on("console", lambda message: message.type != "error" or problems.append(
                f"an error in the console: {message.text}"))
            page.goto(address)
            return Visit(page, asked)

        yield open_it
    assert problems == []


# In place of worker.js: a cell's code is a word that says what comes of it.
PRETENDS = """
self.onmessage = ({data}) => {
    if (data.pyodide) {
        return;
    }
    const {run: number, source} = data;
    postMessage({loading: ["numpy"], done: 1e6, total: 3e6});
    postMessage({began: number});
    if (source === "hang") {
        return;
    }
    const well = source !== "fail";
    postMessage({number, kind: well ? "out" : "error", output: well ? source + "\\n" : "Error: it fails\\n"});
    postMessage({ended: number, well, seconds: 0.25, loaded: []});
};
"""


@pytest.fixture
def pretended(tmp_path: Path) -> Callable[..., Path]:
    """``pretended(*sources)``: a site of one page, with the worker that pretends."""

    def make(*sources: str, language: str = "en") -> Path:
        shutil.copytree(install.PAGE, tmp_path / install.BROWSER, dirs_exist_ok=True)
        (tmp_path / install.BROWSER / "worker.js").write_text(PRETENDS, encoding="utf-8")
        write_page(tmp_path, sources, language)
        return tmp_path

    return make


def test_nothing_is_loaded_before_a_button_is_pressed_and_the_cells_above_run_first(visit, pretended):
    seen = visit(pretended("a", "fail", "c", "d"))
    assert {path.rpartition("/")[2] for path in seen.asked} == {"", "cells.css", "cells.js"}
    assert seen.output(3) == "stored"
    seen.press("Run cell 3")  # the second ends with an error: the third waits for another press
    assert "0.25" in seen.wait(2, "error")
    assert "cell 2" in seen.wait(3, "not run")
    assert [seen.output(n) for n in (1, 2, 3, 4)] == ["a", "Error: it fails", "stored", "stored"]
    seen.press("Run cell 3")
    seen.wait(3, "ran in")
    assert seen.output(3) == "c"
    seen.press("Run cell 4")
    seen.wait(4, "ran in")
    assert "Cell 4" in seen.page.get_by_role("status").inner_text()


def test_a_cell_that_does_not_end_can_be_stopped_and_everything_begins_anew(visit, pretended):
    seen = visit(pretended("a", "hang", "c"))
    seen.press("Run cell 3")
    seen.wait(2, "running")
    seen.wait(3, "waiting for cell 2")
    seen.press("Stop cell 3")  # the one that was pressed, wherever Python is
    seen.wait(2, "stopped")
    assert seen.page.get_by_role("button", name="Restart Python").count() == 0
    assert seen.wait(1, "restarted") == seen.wait(3, "restarted")
    seen.press("Run cell 1")
    seen.wait(1, "ran in")
    seen.press("Restart Python")
    seen.wait(1, "restarted")
    assert seen.page.evaluate("document.activeElement.textContent") == "Run all"


def test_code_is_changed_and_run_by_the_keyboard_alone(visit, pretended):
    seen = visit(pretended("a", "b"))
    keys = seen.page.keyboard
    seen.page.get_by_role("button", name="Edit cell 1", exact=True).focus()
    keys.press("Enter")
    editor = seen.page.get_by_role("textbox", name="Code of cell 1")
    keys.press("ControlOrMeta+a")
    keys.type("x")
    keys.press("Tab")
    keys.type("y")
    assert editor.input_value() == "x    y"
    keys.press("Shift+Enter")
    seen.wait(1, "ran in")
    assert seen.output(1) == "x    y"
    keys.press("Escape")
    keys.press("Tab")  # leaves the code
    assert seen.page.evaluate("document.activeElement.getAttribute('aria-label')") == "Run cell 1"


def test_a_cell_that_has_changed_runs_again_before_those_below(visit, pretended):
    seen = visit(pretended("a", "b", "c"))
    seen.press("Run cell 2")
    seen.wait(2, "ran in")
    seen.press("Edit cell 1")
    editor = seen.page.get_by_role("textbox", name="Code of cell 1")
    editor.fill("x")
    seen.wait(1, "changed")
    seen.press("Run cell 3")
    seen.wait(3, "ran in")
    assert [seen.output(n) for n in (1, 2, 3)] == ["x", "b", "c"]
    seen.press("Original code cell 1")
    assert not editor.is_visible()
    seen.press("Run cell 2")
    seen.wait(1, "ran in")
    assert seen.output(1) == "a"
    seen.press("Edit cell 1")  # what the reader wrote is kept
    assert editor.input_value() == "x"


def test_the_buttons_fit_a_telephone(visit, pretended):
    seen = visit(pretended("a" * 200, "fail", language="ja"), viewport={"width": 390, "height": 800})
    seen.press("すべて実行")
    seen.wait(2, "エラー")
    seen.press("編集:セル1")
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
    for box in [button.bounding_box() for button in seen.page.get_by_role("button").all()]:
        assert min(box["width"], box["height"]) >= 44


def test_a_page_opened_from_disk_has_no_dead_buttons(browser, pretended):
    page = browser.new_page()
    page.goto((pretended("a") / "index.html").as_uri())
    assert page.locator("div.cell").count() == 1
    assert page.get_by_role("button").count() == 0
    page.close()


# --- Python in the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_pyodide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    install.install(Path(PYODIDE), site)
    return site


@needs_pyodide
@pytest.mark.timeout(600)
def test_cells_run_in_the_page(visit, with_pyodide):
    first = ("%matplotlib inline\nimport minigrad as mg\nx = mg.Tensor([3.0], requires_grad=True)\n"
             "(x * x).sum().backward()\nprint('gradient', x.grad.numpy())")
    write_page(with_pyodide, [
        first,
        "from matplotlib.figure import Figure\nfigure = Figure()\nfigure.add_subplot().plot([1, 2])\nfigure",
        "def divide(a):\n    return a / 0\ndivide(x)\nraise ValueError('私')",
        "x.shape",
        "import scipy.special\nscipy.special.erf(0.0)",
        "while True:\n    pass"])
    seen = visit(with_pyodide)
    seen.press("Run cell 2")
    seen.wait(2, "ran in", 300)
    assert seen.output(1).split() == ["gradient", "[6.]"]
    picture = seen.page.get_by_role("img", name="Figure that cell 2 has drawn")
    assert picture.evaluate("image => image.width") > 300
    seen.press("Run cell 3")
    seen.wait(3, "error", 300)
    assert seen.output(3).rstrip().endswith("ValueError: 私")
    assert seen.output(3).splitlines()[1].strip().startswith('File "<cell 3>"')
    seen.press("Run cell 4")
    seen.wait(4, "ran in")
    assert seen.output(4) == "(1,)"
    seen.press("Run cell 5")
    seen.wait(5, "ran in", 300)
    assert "0.0" in seen.output(5)
    seen.press("Run cell 6")
    seen.wait(6, "running")
    seen.press("Stop cell 6")
    seen.press("Edit cell 1")
    seen.page.get_by_role("textbox", name="Code of cell 1").fill("'x' in globals()")
    seen.press("Run cell 1")
    seen.wait(1, "ran in", 300)
    assert seen.output(1) == "False"


@needs_pyodide
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_lesson_and_exercise_runs_in_the_page(script, visit, with_pyodide):
    parts = [text for kind, _, text in cells(ROOT / "examples/lessons" / script) if kind == "code"]
    sources = ["import os\nos.environ['LESSON_UPDATES'] = '20'", *parts]  # 11 takes a minute as it is
    write_page(with_pyodide, sources)
    seen = visit(with_pyodide)
    seen.press("Run all")
    for number in range(1, len(sources) + 1):
        state = seen.wait(number, "ran in|error", 500)
        assert "ran in" in state, seen.output(number)
    assert (seen.page.locator(".live-output img").count() > 0) == (not script.startswith("exercise"))
    assert seen.page.locator(".live-output pre.err").count() == 0
