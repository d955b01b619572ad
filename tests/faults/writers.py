"""Two trainings begin in one folder, and others read it at the same time: one trains, the other is refused."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from click.testing import CliRunner

from tests.faults.children import Child, Ended, command
from tests.faults.kill import SHARE_NEW
from tests.faults.trainings import LIMIT, Base, Training, difference, values
from tests.faults.verdict import short, wrong
from transformer.cli import main
from transformer.training.run_folder import RunError, is_run
from transformer.translator import Translator

PATIENCE = 5.0  # seconds that a reader may take: it computes for less than a tenth, on a machine with other work


def fault(rng: Random, folder: Path, base: Base) -> tuple[str, str | None]:
    """Two trainings with other seeds, each new or resumed, the second at a random moment of the first one's life."""
    out, pair, begun = folder / "run", rng.sample(base.trainings[:2], 2), rng.random() < 0.5
    resumed = [rng.random() < 0.5, rng.random() < 0.5]
    delay, new = rng.choice([0.0, rng.uniform(0, 1.2 * pair[0].seconds)]), rng.random() < SHARE_NEW
    told = (f"{' + '.join('resumed' if it else 'new' for it in resumed)}, {delay:.3f} s apart, "
            f"{'in a run' if begun else 'in no run'}{', in new processes' * new}")
    if begun:
        shutil.copytree(pair[0].stopped, out)
    reader, children, problem = rng.choice([_load, _translate, _info]), list[Child](), None
    for training, goes_on, seconds in zip(pair, resumed, (delay, LIMIT), strict=True):
        given = ["--resume", "--quiet"] if goes_on else training.options
        children.append(command(["train", *given, "--out", out], folder, new=new))
        problem = problem or _reads(reader, out, lambda: _all_over(children), time.monotonic() + seconds)
    ended = [child.wait(LIMIT) for child in children]
    expected = pair[:1] * 2 if begun else pair  # the training that each would end
    return told, problem or _judged(ended, [goes_on == begun for goes_on in resumed], expected, out)


def _all_over(children: list[Child]) -> bool:
    return all(child.is_over(0) for child in children)


def _reads(reader: Callable[[Path], object], out: Path, over: Callable[[], bool], until: float) -> str | None:
    """Read the folder again and again until that moment, or until it is over: what was wrong, if anything."""
    while time.monotonic() < until and not over():
        before, was = time.monotonic(), is_run(out)
        try:
            reader(out)
        except RunError as error:
            if was:
                return f"a reader was refused: {short(str(error))}"
        took = time.monotonic() - before
        if took > PATIENCE:
            return f"a reader took {took:.1f} s"
        time.sleep(0.0005)
    return None


def _load(out: Path) -> None:
    values(out, "latest")
    values(out, "best")


def _translate(out: Path) -> None:
    Translator.load(out).translate(["a b c"], max_length=5)


def _info(out: Path) -> None:
    result = CliRunner().invoke(main, ["info", str(out)])
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    if result.exit_code != 0:
        raise RunError(result.stderr)


def _judged(ended: list[Ended | None], could: list[bool], expected: list[Training], out: Path) -> str | None:
    """What is wrong if one of those that could train had to do so, and undisturbed, and the other to be refused."""
    for end in ended:
        problem = wrong(end, names=out)
        if problem is not None:
            return problem
    trained = [index for index, end in enumerate(ended) if end.status == 0 and "already finished" not in end.output]
    if len(trained) != any(could):
        return f"{len(trained)} trained: {'; '.join(short(end.output + end.errors) for end in ended)}"
    return difference(out, expected[trained[0]]) if trained else None
