"""The help of every command: options in sections, with the names of their values."""

import re

import pytest

from tests.transformer.commands import call
from transformer.cli import main


@pytest.mark.parametrize("command", main.commands)
def test_each_option_stands_in_one_section(command):
    text = call(command, "--help").stdout
    sections, options = (re.findall(pattern, text, re.MULTILINE) for pattern in (r"^(\w.*):$", r"^  (--[\w-]+)"))
    assert len(sections) == len({*sections} - {"Other"}) + sections.count("Other") >= 2
    assert len({*options}) == len(options) == sum(hasattr(p, "section") for p in main.commands[command].params) + 1
    assert "RANGE" not in text
