"""The exercises: a right solution passes; the checker says what is wrong with others."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

LESSONS = Path(__file__).parents[2] / "examples/lessons"
CHECKER = LESSONS / "check.py"

ATTENTION, LAYER_NORM, CROSS_ENTROPY = "exercise_attention_backward", "exercise_layer_norm", "exercise_cross_entropy"
SOLUTIONS = {  # (function, gradient): what is filled in
    ATTENTION: """
        linear_backward.dX = dY @ W.T
        linear_backward.dW = (X.mT @ dY).sum(axis=0)
        linear_backward.db = dY.sum(axis=(0, 1))
        context_backward.dAd = dO @ V.mT
        context_backward.dV = Ad.mT @ dO
        dropout_backward.dA = dAd * kept / (1 - p)
        softmax_backward.dSm = A * (dA - (A * dA).sum(-1, keepdims=True))
        mask_backward.dS = np.where(mask, dSm, 0.0)
        scores_backward.dQ = dS @ K / math.sqrt(Q.shape[-1])
        scores_backward.dK = dS.mT @ Q / math.sqrt(Q.shape[-1])
        memory_backward.dM = dM_keys + dM_values
        self_backward.dX = dX_queries + dX_keys + dX_values
    """,
    LAYER_NORM: """
        scale_and_shift_backward.dXhat = dY * gamma
        scale_and_shift_backward.dgamma = (dY * Xhat).sum(axis=(0, 1))
        scale_and_shift_backward.dbeta = dY.sum(axis=(0, 1))
        product_backward.dXc = dXhat * r
        product_backward.dr = (dXhat * Xc).sum(-1, keepdims=True)
        root_backward.dvar = -(r**3) / 2 * dr
        variance_backward.dXc = 2 * Xc / Xc.shape[-1] * dvar
        centring_backward.dX = dXc
        centring_backward.dmu = -dXc.sum(-1, keepdims=True)
        mean_backward.dX = np.repeat(dmu, D, axis=-1) / D
        closed_form.dX = r * (dXhat - dXhat.mean(-1, keepdims=True) - Xhat * (dXhat * Xhat).mean(-1, keepdims=True))
    """,
    CROSS_ENTROPY: """
        average_backward.dlosses = dloss * counted / counted.sum()
        smoothing_backward.dpicked = -(1 - epsilon) * dlosses
        smoothing_backward.dmean = -epsilon * dlosses
        pick_backward.dlogP = dpicked[..., None] * one_hot(y, C)
        mean_log_backward.dlogP = np.repeat(dmean[..., None], C, axis=-1) / C
        log_softmax_backward.dZ = dlogP - P * dlogP.sum(-1, keepdims=True)
        closed_form.dZ = dloss / counted.sum() * counted[..., None] * (P - (1 - epsilon) * one_hot(y, 7) - epsilon / 7)
    """,
}


def split(lines):
    """The function, the gradient and the expression of each line."""
    return [re.match(r"(\w+)\.(\w+) = (.*)", line.strip()).groups() for line in lines]


HOLES = {exercise: split(text.strip().splitlines()) for exercise, text in SOLUTIONS.items()}


def filled(exercise, *changes):
    """The text of the exercise, solved but for the changes."""
    text = (LESSONS / f"{exercise}.py").read_text(encoding="utf-8")
    functions = re.split(r"(?m)^(?=def )", text)
    right = {(function, gradient): expression for function, gradient, expression in [*HOLES[exercise], *split(changes)]}
    for (function, gradient), expression in right.items():
        (i,) = [i for i, text in enumerate(functions) if text.startswith(f"def {function}(")]
        hole = f"\n    {gradient} = None  #"
        assert functions[i].count(hole) == 1, f"{gradient} in {function} cannot be filled in"
        functions[i] = functions[i].replace(hole, hole.replace("None", expression))
    return "".join(functions)


@pytest.fixture
def verdicts(tmp_path, monkeypatch):
    """What the checker says of a solution with a line changed."""
    monkeypatch.syspath_prepend(str(LESSONS))
    checker = runpy.run_path(str(CHECKER))

    def check(exercise, change):
        path = tmp_path / "solution.py"
        path.write_text(filled(exercise, change), encoding="utf-8")
        functions = runpy.run_path(str(path))
        return sys.modules["checker"].check(checker["exercise_of"](functions), functions)

    return check


def run(*arguments, cwd):
    environment = {**os.environ, "PYTHONPATH": str(LESSONS.parents[1]), "PYTHONUTF8": "1"}
    return subprocess.run([sys.executable, "-W", "error", *map(str, arguments)], cwd=cwd, env=environment, text=True,
                          encoding="utf-8", capture_output=True, check=False)


@pytest.mark.parametrize("exercise", SOLUTIONS)
def test_a_copy_of_the_unfilled_exercise_runs_in_any_folder_and_says_what_to_do(exercise, tmp_path):
    (tmp_path / "mine.py").write_bytes((LESSONS / f"{exercise}.py").read_bytes())
    result = run("mine.py", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("not filled in yet") == len(HOLES[exercise])
    function, gradient, _ = HOLES[exercise][0]
    assert result.stdout.splitlines()[-1] == (
        f"0 of {len(HOLES[exercise])} gradients are right. Next: {gradient} in {function}, then run the file again.")


@pytest.mark.parametrize(("exercise", "given"), [*((exercise, "dXhat") for exercise in SOLUTIONS),
                                                 (LAYER_NORM, "Tensor(dXhat)")])
def test_a_right_solution_passes(exercise, given, tmp_path):
    solution = f"from minigrad import Tensor\n{filled(exercise)}".replace("= r * (dXhat ", f"= r * ({given} ")
    (tmp_path / "mine.py").write_text(solution, encoding="utf-8")
    result = run(CHECKER, "mine.py", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    holes = len(HOLES[exercise])
    assert f"{holes} of {holes} gradients are right." in result.stdout
    error = re.search(r"they are the gradients of the engine's [\w -]+, to (\S+):", result.stdout).group(1)
    assert float(error) < 1e-13


WHOLE = {  # in a right solution, a mistake in the function that calls all others
    ATTENTION: ("linear_backward(join_heads(dK), M", "linear_backward(join_heads(2 * dK), M",
                "attention_backward as a whole is not, in the gradients of X, M, WK"),
    LAYER_NORM: ("dXc_product + dXc_variance", "dXc_product",
                 "layer_norm_backward as a whole is not, in the gradients of X."),
    CROSS_ENTROPY: ('form": closed_form(dloss', 'form": closed_form(1.0',
                    "cross_entropy_backward as a whole is not, in the gradients of Z by the closed form."),
}


def test_a_folder_of_solutions_gets_a_line_each(tmp_path):
    """Right steps in a wrong whole are noticed; a file that ends the program ends itself alone."""
    told = {}
    for exercise, (right, wrong, said) in WHOLE.items():
        solution = filled(exercise)
        assert right in solution
        (tmp_path / f"{exercise}.py").write_text(solution.replace(right, wrong), encoding="utf-8")
        told[f"{exercise}.py"] = rf"(\d+) of \1 gradients are right\. But {said}"
    (tmp_path / "of/anna").mkdir(parents=True)
    notebook = {"cells": [{"cell_type": "markdown", "source": "# Mine"},
                          {"cell_type": "code", "source": filled(LAYER_NORM).splitlines(keepends=True)}]}
    (tmp_path / "of/anna/mine.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (tmp_path / "ends.py").write_text("print(1)\nraise SystemExit", encoding="utf-8")
    told |= {str(Path("of/anna/mine.ipynb")): r"11 of 11 gradients are right\.$", "ends.py": "line 2: SystemExit"}
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden/mine.py").touch()
    result = run(CHECKER, tmp_path, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (1, "")
    lines = dict(line.split(": ", 1) for line in result.stdout.splitlines())
    assert lines.keys() == told.keys()
    for name, line in lines.items():
        assert re.match(told[name], line), line
    assert run(CHECKER, "of", cwd=tmp_path).returncode == 0


def test_a_solution_that_does_not_end_is_left_behind(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(LESSONS))
    judge_folder = runpy.run_path(str(CHECKER))["judge_folder"]
    (tmp_path / "endless.py").write_text("while True: pass", encoding="utf-8")
    assert not judge_folder(tmp_path, seconds=1)
    (tmp_path / "endless.py").write_text("import os; os._exit(0)", encoding="utf-8")
    assert not judge_folder(tmp_path)
    assert capsys.readouterr().out == "endless.py: still runs after 1 s\nendless.py: nothing\n"


WRONG = {  # a line of a solution, and below it what the checker says: a pattern
    ATTENTION: r"""
        linear_backward.dX = dY @ W
            W is transposed: a ᵀ is missing there, or one too many
        linear_backward.dX = -dY @ W.T
            is -1 times the right one: the sign is wrong
        linear_backward.dW = X.mT @ dY
            shape \(3, 10, 10\).*the sum over the batch is missing
        linear_backward.dW = X.T @ dY
            raises ValueError at `dW = X\.T @ dY` \(\.T turns round all axes
        dropout_backward.dA = dAd
            kept is not applied.*; and then it is 0.8 times .* 1 − p
        softmax_backward.dSm = A * (dA - (A * dA).sum(-2, keepdims=True))
            D is summed over the queries
        softmax_backward.dSm = A * (dA - (A * dA).sum(-1, keepdims=True)) + (A == 0)
            is right but for 126 numbers, which must be 0
        self_backward.dX = dX_queries - 2 * dX_values
            through the keys is missing; what came through the values is counted -2 times
    """,
    LAYER_NORM: r"""
        scale_and_shift_backward.dXhat = dY
            gamma is missing
        variance_backward.dXc = 2 * Xc / 6 * dvar
            D/\(D − 1\)\? The variance of layer norm divides by D
        centring_backward.dX = dXc - dXc.mean(-1, keepdims=True)
            what comes through μ is in it already
        mean_backward.dX = dmu / D
            must have \(3, 5, 7\): it must be spread over the features
        closed_form.dX = r * (dXhat - 7 * dXhat.mean(-1, keepdims=True) - Xhat * (dXhat * Xhat).mean(-1, keepdims=True))
            the mean is counted 7 times.* D, with D
        closed_form.dX = r * (dXhat - dXhat.mean(-2, keepdims=True) - Xhat * (dXhat * Xhat).mean(-1, keepdims=True))
            the mean of dX̂ is taken over the tokens, and must be taken over the features
    """,
    CROSS_ENTROPY: r"""
        average_backward.dlosses = dloss * ~counted / counted.sum()
            counted is upside down
        average_backward.dlosses = dloss * counted / counted.sum(axis=1, keepdims=True) / len(counted)
            that is the mean of the sentences' means
        pick_backward.dlogP = dpicked * one_hot(y, C)
            raises .*keepdims=True keeps an axis, x\[\.\.\.
        log_softmax_backward.dZ = dlogP - P * (P * dlogP).sum(-1, keepdims=True)
            the sum is that of P ∘ dlogP, as in softmax
        closed_form.dZ = dloss / counted.sum() * (P - one_hot(y, 7))
            ^counted is not .* the target is counted 1.429 times.*: 1/\(1 − ε\)\?.* the label smoothing is missing
        closed_form.dZ = dloss / counted.sum() * counted[..., None] * (P - np.where(one_hot(y, 7), .7, .3 / 6))
            the label smoothing is counted 1.167 times.*: C/\(C − 1\)\?
    """,
}


PAIRS = [(exercise, *pair) for exercise, text in WRONG.items()
         for lines in [text.strip().splitlines()] for pair in zip(lines[::2], lines[1::2], strict=True)]


@pytest.mark.parametrize(("exercise", "change", "expected"), PAIRS)
def test_a_wrong_gradient_gets_its_diagnosis(verdicts, exercise, change, expected):
    ((function, gradient, _),) = split([change])
    found = verdicts(exercise, change)
    assert list(found) == [(f, g) for f, g, _ in HOLES[exercise]]
    verdict = found.pop((function, gradient))
    assert re.search(expected.strip(), verdict), verdict
    others = {f for (f, _), verdict in found.items() if verdict is not None}
    assert others <= ({function} if "raises" in verdict else set())  # where it raises, it returns nothing
