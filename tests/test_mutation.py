"""The mutation driver: what it changes, what it leaves alone, and that it tells noticed from unnoticed faults."""

import subprocess
import textwrap

import pytest

from tests.mutation.campaign import Campaign, Copy, draw
from tests.mutation.mutators import Source


def becomes(code):
    """The lines that the mutants of a text have in place of its own."""
    source = Source("toy/maths.py", textwrap.dedent(code) + "\n")
    return {mutant.changed("+") for site in range(len(source.sites)) if (mutant := source.mutant(site))}


@pytest.mark.parametrize(("line", "expected"), [
    ("α = x * -(a + b)  # ×", {"α = x / -(a + b)  # ×", "α = x * (a + b)  # ×", "α = x * -(a - b)  # ×"}),
    ("y = c * (1 - p)", {"y = c / (1 - p)", "y = c * (p)", "y = c * (1 + p)", "y = c * (2 - p)"}),
    ("y = a @ b.mT", {"y = b.mT @ a", "y = a @ b"}),
    ("y = a < b and c is None", {"y = a <= b and c is None", "y = a < b or c is None", "y = a < b and c is not None"}),
    ("y = x.sum(axis=-2, keepdims=True)", {"y = x.sum(axis=-1, keepdims=True)", "y = x.sum(axis=-3, keepdims=True)",
                                           "y = x.sum(axis=2, keepdims=True)", "y = x.sum(axis=-2, keepdims=False)"}),
    ("y = xp.where(m, a, b)", {"y = xp.where(m, b, a)", "y = a", "y = b"}),
    ("y /= total", {"pass", "y *= total"}),
    ('raise ValueError(f"{x}" + str(x - 1))', set()),
    ('def f(x: "int | 3" = None) -> tuple[1]: ...', set()),
])
def test_the_mutants_of_a_line(line, expected):
    assert becomes(line) == expected


MATHS = '''
def area(width: float, height: float) -> float:
    return width * height


def unchecked(number: float) -> float:
    return number + 1
'''
TESTS = """
from toy.maths import area, unchecked


def test_area():
    assert area(2, 3) == 6


def test_unchecked_runs():
    unchecked(1)


def test_that_fails():
    assert area(1, 1) == 2
"""


@pytest.fixture
def toy(tmp_path):
    """A small project."""
    root = tmp_path / "project"
    for name, text in {"toy/__init__.py": "", "toy/maths.py": MATHS, "tests/test_maths.py": TESTS,
                       "tests/test_slowly.py": "import time\n\ndef test_slowly():\n    time.sleep(60)\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


@pytest.mark.slow
def test_a_campaign_finds_what_no_test_notices_and_leaves_the_project_as_it_is(toy, tmp_path):
    before = {path: path.read_bytes() for path in toy.rglob("*") if path.is_file()}
    drawn = [mutant for mutant in draw(toy, ["toy/*.py"], 100, 0) if mutant.mutator in ("arithmetic", "constants")]
    campaign = Campaign(toy, {"toy": ["tests/test_maths.py"]}, tmp_path / "cache")
    found = {entry["becomes"]: (entry["status"], entry["test"]) for entry in campaign.run(drawn)}
    assert found == {"return width / height": ("killed", "tests/test_maths.py::test_area"),
                     "return number - 1": ("survived", ""), "return number + 2": ("survived", "")}
    assert campaign.measured.failing == ["tests/test_maths.py::test_that_fails"]
    assert {path: path.read_bytes() for path in toy.rglob("*") if path.is_file()} == before


def test_a_hang_is_ended(toy, tmp_path):
    status, _ = Copy(toy, tmp_path / "copy").pytest(["tests/test_slowly.py"], seconds=2)
    assert status is None
