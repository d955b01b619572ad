"""The mutation driver: what it changes, what it leaves alone, and that it tells noticed from unnoticed faults."""

import subprocess
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutation.campaign import Campaign, Copy, Outcome, draw
from tests.mutation.measure import folders_of
from tests.mutation.mutators import Mutant, Source
from tests.mutation.report import key, record, summary
from tests.mutation.table import TESTS


def mutants(code: str) -> list[Mutant]:
    source = Source("toy/maths.py", textwrap.dedent(code) + "\n")
    return [mutant for site in range(len(source.sites)) if (mutant := source.mutant(site))]


@pytest.mark.parametrize(("line", "becomes"), [
    ("y = a + b", {"y = a - b"}),
    ("α = x * -(a + b)  # ×", {"α = x / -(a + b)  # ×", "α = x * (a + b)  # ×", "α = x * -(a - b)  # ×"}),
    ("y = c * (1 - p)", {"y = c / (1 - p)", "y = c * (p)", "y = c * (1 + p)", "y = c * (2 - p)"}),
    ("y = a @ b.mT", {"y = b.mT @ a", "y = a @ b"}),
    ("y = a < b and c is None", {"y = a <= b and c is None", "y = a < b or c is None", "y = a < b and c is not None"}),
    ("y = x[0, -1]", {"y = x[1, -1]", "y = x[0, 0]", "y = x[0, 1]"}),
    ("y = x.sum(axis=-2, keepdims=True)", {"y = x.sum(axis=-1, keepdims=True)", "y = x.sum(axis=-3, keepdims=True)",
                                           "y = x.sum(axis=2, keepdims=True)", "y = x.sum(axis=-2, keepdims=False)"}),
    ("y = xp.where(m, a, b)", {"y = xp.where(m, b, a)", "y = a", "y = b"}),
    ("y = xp.subtract(a, b, out=a)", {"y = xp.subtract(b, a, out=a)", "y = xp.add(a, b, out=a)"}),
    ("y = 0.5", {"y = 0.505"}),
    ("y /= total", {"pass", "y *= total"}),
    ("rule = lambda g, y: g * y", {"rule = lambda g, y: -(g * y)", "rule = lambda g, y: g / y"}),
    ("y = a if ready else b", {"y = a if not ready else b", "y = a if False else b"}),
    ("y = [n for n in names if n]", {"y = [n for n in names if True]"}),
])
def test_the_mutants_of_a_line(line, becomes):
    assert {mutant.becomes for mutant in mutants(line)} == becomes


def test_types_messages_and_names_are_left_alone():
    assert mutants('''
        """Subtract 1 - 2."""
        from typing import TYPE_CHECKING
        __all__ = ["a"] + ["b"]
        if TYPE_CHECKING:
            import numpy

        def f(x: "int | 3" = None) -> tuple[1]:
            text = f"{x + 1}" + "of" + f"{-x}"
            raise ValueError(f"{x}" + str(x - 1))
        ''') == []


def test_a_module_belongs_to_the_folder_of_its_name_and_to_those_around():
    table = dict.fromkeys(["minigrad", "minigrad/ops", "minigrad/tensor", "minigrad/op"], ())
    assert folders_of("minigrad/ops/edges.py", table) == ["minigrad/ops", "minigrad"]
    assert folders_of("minigrad/tensor.py", table) == ["minigrad/tensor", "minigrad"]


@pytest.mark.parametrize("package", ["minigrad", "transformer"])
def test_every_folder_has_tests_that_exist(package):
    root = Path(__file__).parents[1]
    files = [path.relative_to(root).as_posix() for path in (root / package).rglob("*.py")]
    assert all(any((root / place).exists() for place in TESTS[folders_of(file, TESTS)[-1]]) for file in files)


# --- A campaign on a small project -----------------------------------------------------------------------------

MATHS = '''
def area(width: float, height: float) -> float:
    return width * height


def unchecked(number: float) -> float:
    return number + 1
'''

TEST_MATHS = """
import time

import pytest

from toy.maths import area, unchecked


@pytest.mark.parametrize("height", [1, 3, 5])
def test_area(height):
    assert area(2, height) == 2 * height


def test_unchecked_runs():
    unchecked(1)


def test_that_fails():
    assert area(1, 1) == 2


"""


@pytest.fixture
def toy(tmp_path):
    root = tmp_path / "project"
    for name, text in {"toy/__init__.py": "", "toy/maths.py": MATHS, "tests/test_maths.py": TEST_MATHS,
                       "tests/test_slowly.py": "import time\n\ndef test_slowly():\n    time.sleep(60)\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


def test_a_seed_gives_the_same_mutants(toy):
    first, again, other = (draw(toy, ["toy/*.py"], 3, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(draw(toy, ["toy/*.py"], 100, 1)) == 5


def test_a_campaign_finds_what_no_test_notices_and_leaves_the_project_as_it_is(toy, tmp_path):
    before = {path: path.read_bytes() for path in toy.rglob("*") if path.is_file()}
    drawn = [mutant for mutant in draw(toy, ["toy/*.py"], 100, 0) if mutant.mutator in ("arithmetic", "constants")]
    campaign = Campaign(toy, {"toy": ["tests/test_maths.py"]}, tmp_path / "cache")
    outcomes = {outcome.mutant.becomes: outcome for outcome in campaign.run(drawn)}
    assert {line: outcome.status for line, outcome in outcomes.items()} == {
        "return width / height": "killed", "return number - 1": "survived", "return number + 2": "survived"}
    assert outcomes["return width / height"].test.startswith("tests/test_maths.py::test_area[")
    assert campaign.measured.failing == ["tests/test_maths.py::test_that_fails"]
    assert campaign.measured.on_lines("toy/maths.py", 7, 7) == {"tests/test_maths.py::test_unchecked_runs"}
    assert {path: path.read_bytes() for path in toy.rglob("*") if path.is_file()} == before


def test_a_hang_is_ended(toy, tmp_path):
    status, _ = Copy(toy, tmp_path / "copy").pytest(["tests/test_slowly.py"], seconds=2)
    assert status is None


def test_explained_survivors_do_not_count():
    (mutant,) = mutants("y = a + b")
    other = replace(mutant, file="toy/other.py")
    outcomes = [Outcome(mutant, "survived", "", 1.0, 9), Outcome(other, "survived", "", 1.0, 9),
                Outcome(mutant, "killed", "t", 1.0, 9), Outcome(mutant, "timeout", "", 1.0, 9)]
    found = summary([record(outcome, {key(mutant): "a and b are 0"}) for outcome in outcomes])
    assert found["score"] == 2 / 3
    assert found["counts"] == {"equivalent": 1, "survived": 1, "killed": 1, "timeout": 1}
