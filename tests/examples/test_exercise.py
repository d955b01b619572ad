"""The exercise on the backward of attention: a right solution passes; the checker says what is wrong with others."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

LESSONS = Path(__file__).parents[2] / "examples/lessons"
EXERCISE = LESSONS / "exercise_attention_backward.py"
CHECKER = LESSONS / "check_attention_backward.py"

SOLUTION = {
    ("linear_backward", "dX"): "dY @ W.T",
    ("linear_backward", "dW"): "(X.mT @ dY).sum(axis=0)",
    ("linear_backward", "db"): "dY.sum(axis=(0, 1))",
    ("context_backward", "dAd"): "dO @ V.mT",
    ("context_backward", "dV"): "Ad.mT @ dO",
    ("dropout_backward", "dA"): "dAd * kept / (1 - p)",
    ("softmax_backward", "dSm"): "A * (dA - (A * dA).sum(axis=-1, keepdims=True))",
    ("mask_backward", "dS"): "np.where(mask, dSm, 0.0)",
    ("scores_backward", "dQ"): "dS @ K / math.sqrt(Q.shape[-1])",
    ("scores_backward", "dK"): "dS.mT @ Q / math.sqrt(Q.shape[-1])",
    ("memory_backward", "dM"): "dM_keys + dM_values",
    ("self_backward", "dX"): "dX_queries + dX_keys + dX_values",
}


def filled(expressions):
    """The text of the exercise with expressions in the place of its Nones."""
    functions = re.split(r"(?m)^(?=def )", EXERCISE.read_text(encoding="utf-8"))
    for (function, gradient), expression in expressions.items():
        (i,) = [i for i, text in enumerate(functions) if text.startswith(f"def {function}(")]
        hole = f"\n    {gradient} = None  #"
        assert functions[i].count(hole) == 1, f"{gradient} in {function} cannot be filled in"
        functions[i] = functions[i].replace(hole, hole.replace("None", expression))
    return "".join(functions)


@pytest.fixture
def verdicts(tmp_path, monkeypatch):
    """What the checker says of a solution with some expressions changed."""
    monkeypatch.syspath_prepend(str(LESSONS))
    checker = runpy.run_path(str(CHECKER))

    def check(changes):
        path = tmp_path / "solution.py"
        path.write_text(filled({**SOLUTION, **changes}), encoding="utf-8")
        return checker["check"](runpy.run_path(str(path)))

    return check


def run(*arguments, cwd):
    environment = {**os.environ, "PYTHONPATH": str(LESSONS.parents[1]), "PYTHONUTF8": "1"}
    return subprocess.run([sys.executable, "-W", "error", *map(str, arguments)], cwd=cwd, env=environment, text=True,
                          encoding="utf-8", capture_output=True, check=False)


def test_the_unfilled_exercise_runs_and_says_what_to_do(tmp_path):
    result = run(EXERCISE, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("not filled in yet") == len(SOLUTION)
    assert result.stdout.splitlines()[-1] == (
        "0 of 12 gradients are right. Next: dX in linear_backward, then run the file again.")


def test_a_right_solution_passes(tmp_path):
    (tmp_path / "mine.py").write_text(filled(SOLUTION), encoding="utf-8")
    result = run(CHECKER, "mine.py", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "12 of 12 gradients are right." in result.stdout
    error = re.search(r"they are the gradients of the engine's attention, to (\S+):", result.stdout).group(1)
    assert float(error) < 1e-13


def test_right_steps_in_a_wrong_whole_are_noticed(tmp_path):
    changed = filled(SOLUTION).replace("linear_backward(join_heads(dK), M", "linear_backward(join_heads(2 * dK), M")
    (tmp_path / "mine.py").write_text(changed, encoding="utf-8")
    result = run(CHECKER, "mine.py", cwd=tmp_path)
    assert result.returncode == 1
    assert "attention_backward as a whole is not, in the gradients of X, M, WK" in result.stdout


ROOT_DK = r"is 2.236 times the right one: √d_k\?"
WRONG = [  # (function, gradient), what is filled in, what the checker says
    ("linear_backward", "dX", "None", "not filled in yet"),
    ("linear_backward", "dX", "'dY'", "is a str; an array"),
    ("linear_backward", "dX", "dY @ W", "W is transposed: a ᵀ is missing there, or one too many"),
    ("linear_backward", "dX", "-dY @ W.T", "is -1 times the right one: the sign is wrong"),
    ("linear_backward", "dX", "0 * dY @ W.T", "is 0 everywhere"),
    ("linear_backward", "dX", "dY @ W.T * (1 + 3e-7)", r"is 1 \+ 3.0e-07 times the right one: a number with few"),
    ("linear_backward", "dX", "np.full_like(X, np.nan)", "has 210 numbers that are infinite or NaN"),
    ("linear_backward", "dX", "dY", "it is dY itself"),
    ("linear_backward", "dW", "X.mT @ dY", r"shape \(3, 10, 10\).*the sum over the batch is missing"),
    ("linear_backward", "dW", "(X.mT @ dY).mean(axis=0)", "is 0.3333 times the right one: 1/B, with B = 3 sentences"),
    ("linear_backward", "dW", "(X.mT @ X).sum(axis=0)", "X stands where dY belongs"),
    ("linear_backward", "dW", "X.T @ dY", r"raises ValueError at `dW = X\.T @ dY` \(\.T turns round all axes"),
    ("linear_backward", "db", "dY.sum(axis=(0, 1), keepdims=True)", r"must have \(10,\): the numbers are right"),
    ("dropout_backward", "dA", "dAd", "the dropout mask is not applied.*; and then it is 0.8 times .* 1 − p"),
    ("dropout_backward", "dA", "dAd * ~kept / (1 - p)", "the dropout mask is upside down"),
    ("softmax_backward", "dSm", "A * dA", r"−D is missing: the sums of your rows reach \d\.\d+, and all must be 0"),
    ("softmax_backward", "dSm", "A * (dA - (A * dA).sum(-2, keepdims=True))", "D is summed over the queries"),
    ("softmax_backward", "dSm", "dA - (A * dA).sum(-1, keepdims=True)", "the factor A is missing"),
    ("softmax_backward", "dSm", "A * (dA - (A * dA).sum(-1, keepdims=True)) + (A == 0)",
     "is right but for 126 numbers, which must be 0"),
    ("softmax_backward", "dSm", "A * (1 - A) * dA", "it is the diagonal of the Jacobian alone"),
    ("mask_backward", "dS", "dSm", "the mask is not applied"),
    ("scores_backward", "dQ", "dS @ K", ROOT_DK),
    ("scores_backward", "dQ", "dS @ Q / math.sqrt(Q.shape[-1])", "Q stands where K belongs"),
    ("memory_backward", "dM", "dM_keys", "what came through the values is missing"),
    ("self_backward", "dX", "dX_queries - 2 * dX_values",
     "through the keys is missing; what came through the values is counted -2 times"),
]


@pytest.mark.parametrize(("function", "gradient", "expression", "expected"), WRONG)
def test_a_wrong_gradient_gets_its_diagnosis(verdicts, function, gradient, expression, expected):
    found = verdicts({(function, gradient): expression})
    assert found.keys() == SOLUTION.keys()
    verdict = found.pop((function, gradient))
    assert re.search(expected, verdict), verdict
    others = {(f, g): verdict for (f, g), verdict in found.items() if verdict is not None}
    if "raises" in verdict:  # then the function returns nothing
        assert {f for f, _ in others} <= {function}
    else:
        assert others == {}
