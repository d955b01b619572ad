"""Checks a solution of one of the exercises, and says of each gradient whether it is right, or how it is wrong.

    python examples/lessons/check.py FILE

FILE is a copy of exercise_attention_backward.py, exercise_layer_norm.py or exercise_cross_entropy.py. Exits with 0 if
everything is right, with 1 if not, and with 2 if FILE is no exercise or cannot be run.
"""

import runpy
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
        path.read_bytes()  # of a folder, runpy would look for a program inside
        return runpy.run_path(str(path))
    except OSError as error:
        raise NoExercise((error.strerror or str(error)).lower()) from error
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        raise NoExercise(f"{place}{error.msg}") from error
    except MISTAKES as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        place = f"line {lines[-1]}: " if lines else ""
        raise NoExercise(f"{place}{type(error).__name__}: {error}") from error


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python check.py FILE, with your copy of an exercise_….py", file=sys.stderr)
        sys.exit(2)
    try:
        verdict, everything_right = judge(functions_of(Path(sys.argv[1])))
    except NoExercise as problem:
        print(f"{sys.argv[1]}: {problem}", file=sys.stderr)
        sys.exit(2)
    print(verdict)
    sys.exit(not everything_right)
