"""Calling the commands in this process, or starting them in one of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from transformer.cli import main

ROOT = Path(__file__).parents[2]
SIZES = ["--d-model", 8, "--heads", 2, "--layers", 1, "--d-ff", 8]
SMALL = ["--task", "copy", *SIZES, "--train-count", 60, "--valid-count", 5, "--batch-tokens", 100, "--schedule",
         "constant", "--quiet"]


def call(*arguments, standard_input=None):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=standard_input)


def refused(*arguments, standard_input=None):
    """The one line on standard error of a command that is refused."""
    result = call(*arguments, standard_input=standard_input)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    return result.stderr


def start(*arguments, **options):
    """A process that heeds Ctrl-C, even where this one was started in the background, which has it ignored."""
    command = [sys.executable, "-m", "transformer", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    defaults = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    if os.name == "posix":
        defaults["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(command, env=environment, **defaults | options)
