"""Checks a solution of one of the exercises, and says of each gradient whether it is right, or how it is wrong.

    python examples/lessons/check.py FILE
    python examples/lessons/check.py FOLDER    (a line for each file in it)

FILE is a copy of exercise_attention_backward.py, exercise_layer_norm.py or exercise_cross_entropy.py, or a notebook of
one. Exits with 0 if everything is right, with 1 if not, and with 2 if FILE is no exercise or cannot be run.
"""

import json
import linecache
import runpy
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attention_steps
import cross_entropy_steps
import layer_norm_steps
from checker import MISTAKES, Exercise, judge_exercise

EXERCISES = (attention_steps.EXERCISE, layer_norm_steps.EXERCISE, cross_entropy_steps.EXERCISE)


class NoExercise(Exception):
    """What is wrong with a file, in one line."""


def exercise_of(functions: Mapping[str, Any]) -> Exercise:
    """The exercise that most of these functions belong to; NoExercise if none does."""
    found = {exercise.backward: sum(step.function in functions for step in exercise.steps) for exercise in EXERCISES}
    best = max(EXERCISES, key=lambda exercise: found[exercise.backward])
    if not found[best.backward]:
        raise NoExercise("it defines no function of an exercise: give a copy of an exercise_….py")
    return best


def judge(functions: Mapping[str, Any]) -> tuple[str, bool]:
    """The report on a solution, and whether everything is right.

    Args:
        functions: ``globals()`` of the exercise, or what `runpy.run_path` returns.
    """
    return judge_exercise(exercise_of(functions), functions)


def functions_of(path: Path) -> dict[str, Any]:
    """What a file defines; NoExercise if it is missing, is no Python, or raises an error as it runs."""
    try:
        content = path.read_bytes()  # of a missing file runpy would raise an ImportError
        return functions_of_notebook(path, content) if path.suffix == ".ipynb" else runpy.run_path(str(path))
    except OSError as error:
        raise NoExercise((error.strerror or str(error)).lower()) from error
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        raise NoExercise(f"{place}{error.msg}") from error
    except (*MISTAKES, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        place = f"line {lines[-1]}: " if lines else ""
        raise NoExercise(f"{place}{type(error).__name__}: {error}") from error


def functions_of_notebook(path: Path, content: bytes) -> dict[str, Any]:
    """What the cells of a notebook define."""
    cells = [cell for cell in json.loads(content)["cells"] if cell["cell_type"] == "code"]
    source = "\n\n".join("".join(cell["source"]) for cell in cells)
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))  # for error messages
    names = {"__name__": path.stem}
    exec(compile(source, str(path), "exec"), names)
    return names


def judge_folder(folder: Path, seconds: float = 60) -> bool:
    """Print a line for each solution in a folder, and in the folders in it; whether everything is right.

    Each is checked by a process of its own, which ends after these seconds.
    """
    right = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".py", ".ipynb") or "/." in f"/{path.relative_to(folder).as_posix()}":
            continue
        command = [sys.executable, "-X", "utf8", __file__, str(path)]
        try:
            done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            right.append(False)
            line = f"still runs after {seconds:.0f} s"
        else:
            told = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
            line = next((text for text in told if "gradients are right." in text), told[-1].removeprefix(f"{path}: "))
            if done.returncode == 1 and told[-1] != line:
                line = f"{line} {told[-1]}"  # right one by one, and wrong together
            right.append(done.returncode == 0 and "gradients are right." in line)
        print(f"{path.relative_to(folder)}: {line.removesuffix(', then run the file again.')}", flush=True)
    return bool(right) and all(right)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python check.py FILE, with your copy of an exercise_….py, or a folder of them", file=sys.stderr)
        sys.exit(2)
    if Path(sys.argv[1]).is_dir():
        sys.exit(not judge_folder(Path(sys.argv[1])))
    try:
        verdict, everything_right = judge(functions_of(Path(sys.argv[1])))
    except NoExercise as problem:
        print(f"{sys.argv[1]}: {problem}", file=sys.stderr)
        sys.exit(2)
    print(verdict)
    sys.exit(not everything_right)
