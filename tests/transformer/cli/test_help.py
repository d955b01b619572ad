"""The help of every command: options in sections, with the names of their values."""

import re

import pytest

from tests.transformer.commands import call
from transformer.cli import main


@pytest.mark.parametrize("command", main.commands)
def test_options_stand_in_sections_with_names_for_their_values(command):
    text = call(command, "--help").stdout
    sections = re.findall(r"^(\w.*):$", text, re.MULTILINE)
    assert {*sections} == {getattr(parameter, "section", "Other") for parameter in main.commands[command].params} | {
        "Other"}
    assert "RANGE" not in text
