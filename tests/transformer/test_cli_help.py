"""The commands' help."""

import pytest

from tests.transformer.commands import COMMANDS, call
from transformer.cli import main
from transformer.data import TASKS
from transformer.training.recipes import RECIPES


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"Usage: main {command}" in result.output
    for parameter in main.commands[command].params:
        if parameter.param_type_name != "argument":
            assert parameter.help, parameter.name
            assert parameter.opts[0] in result.output


def test_help_of_train_is_in_sections_and_has_the_recipes():
    text = call("train", "--help").output
    titles = ["Data (one of --task and --train)", "Model", "Training", "Validation and checkpoints", "Run", "Machine"]
    places = [text.index(f"\n{title}:\n") for title in titles]
    assert places == sorted(places)
    for name in RECIPES:
        assert f"\n    {name} " in text
    for task in TASKS:
        assert task in text


def test_help_shows_defaults():
    text = " ".join(call("translate", "--help").output.split())
    assert "[default: 64; x>=1]" in text
    assert "[default: cpu]" in text


def test_without_a_command_the_help_is_shown():
    result = call()
    assert result.exit_code == 0
    assert all(f"\n  {command} " in result.output for command in COMMANDS)
