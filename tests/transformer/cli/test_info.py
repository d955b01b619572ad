"""``info --verify``: what is intact in the folder of a run; and what other commands say of one that is damaged."""

import re
import shutil

import pytest

from tests.transformer.commands import call, refused
from tests.transformer.runs import snapshot


@pytest.fixture(scope="module")
def longer_run(small_run, tmp_path_factory):
    run = shutil.copytree(small_run, tmp_path_factory.mktemp("longer") / "run")
    result = call("train", "--resume", "--out", run, "--steps", 3, "--quiet")
    assert result.exit_code == 0, result.output
    return run


@pytest.fixture
def copy(longer_run, tmp_path):
    """A copy of a run with checkpoints after 2 and 3 steps; the last is the latest."""
    return shutil.copytree(longer_run, tmp_path / "copy")


DAMAGES = {
    "nothing": (None, b"", []),
    "weights": ("checkpoints/00000002/model.safetensors", b"X", ["00000002"]),
    "optimizer": ("checkpoints/00000003/optimizer.safetensors", b"X", ["00000003", "latest:", "best:"]),
    "description": ("checkpoints/00000003/run.json", b" ", ["00000003", "latest:", "best:"]),
    "pointer": ("best", b"/..", ["best:"]),
    "log": ("log.csv", b"1,2,three\n", ["log.csv"]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_verify(damage, copy):
    """Every part has a line, a pointer to a damaged checkpoint tells its damage, and nothing is written."""
    file, added, damaged = DAMAGES[damage]
    if file is not None:
        with open(copy / file, "ab") as opened:
            opened.write(added)
    before = snapshot(copy)
    result = call("info", copy, "--verify")
    assert result.exit_code == bool(damaged), result.output
    lines = result.stdout.splitlines()
    assert [text.split()[0] for text in lines] == ["00000003", "00000002", "latest:", "best:", "log.csv"]
    assert [text.split()[0] for text in lines if not text.endswith(" intact")] == damaged
    assert snapshot(copy) == before
    if not damaged:
        assert re.search(r"parameters\n(.*\n)*.*d_model +8\n(.*\n)*.*step +3\n", call("info", copy).stdout)


def test_a_damaged_checkpoint_is_replaced_by_name(copy):
    """What is damaged, what is intact, and the option that takes it, in one line; then the option works."""
    for name in ("latest", "best"):
        (copy / name).write_text("00000003\n")
    path = copy / "checkpoints/00000003/model.safetensors"
    path.write_bytes(path.read_bytes()[:-5])
    before = snapshot(copy)
    for command, *arguments in (["translate"], ["evaluate", "--count", 1], ["explain", "a b", "--text"]):
        command = [command, copy, *arguments]
        result = call(*command, "--checkpoint", "00000002", standard_input="a b\n")
        assert result.exit_code == 0, result.output
        for message, given in (("00000003/model.safetensors", command),
                               ("00000001 is missing", [*command, "--checkpoint", "00000001"])):
            said = refused(*given)
            assert message in said
            assert "info --verify names" in said
    assert "00000003/model.safetensors" in refused("info", copy)
    for message, *given in (
            ("00000003: cannot be read: ", "--resume"), ("00000009 is missing", "--resume-from=00000009"),
            ("not the name of a checkpoint", "--resume-from=../../else")):
        assert message in refused("train", "--out", copy, *given)
    assert snapshot(copy) == before
    result = call("train", "--out", copy, "--resume-from", "00000002", "--steps", 3, "--quiet")
    assert result.exit_code == 0, result.output
    assert call("info", copy, "--verify").exit_code == 0
