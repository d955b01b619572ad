"""Paths that are not UTF-8: every command takes them, a run keeps them, and messages show them with an escape."""

import os
import sys
from pathlib import Path

import pytest

from tests.transformer.commands import SIZES, call, refused
from transformer.training.run_folder import write_output

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, names of files are Unicode")


@pytest.fixture
def cafe(tmp_path, monkeypatch):
    """A name with a byte that is no UTF-8, as Python has it; such files lie in the working folder."""
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9")
    for suffix in (".en", ".ja"):
        with open(name + suffix, "w", encoding="utf-8") as file:
            file.write("a b c\nb c\n" * 8)
    return name


def test_every_command(cafe):
    files = [f"{cafe}.en", f"{cafe}.ja"]
    again = ["train", "--out", cafe, "--resume", "--quiet"]
    for command in (["train", "--train", *files, "--valid", *files, "--out", cafe, "--steps", 1,
                     "--schedule", "constant", "--quiet", *SIZES],
                    [*again, "--steps", 8, "--profile", f"{cafe}.json"],
                    ["info", cafe, "--verify"], ["translate", cafe],
                    ["evaluate", cafe, "--source", files[0], "--target", files[1]],
                    ["explain", cafe, "a b", "--html", f"{cafe}.html"],
                    ["write-out", cafe, "a b", "--out", f"{cafe}.py"]):
        result = call(*command, standard_input="a b\n")
        assert result.exit_code == 0, (command, result.output, result.exception)
    endings = b"", b".en", b".ja", b".json", b".html", b".py", b".npz"
    assert set(os.listdir(b".")) == {b"caf\xe9" + ending for ending in endings}
    assert r"caf\udce9.en" in call("info", cafe).stdout
    os.remove(files[0])
    assert r"caf\udce9.en" in refused(*again)


def test_a_page_is_whole_or_as_it_was(run, tmp_path, monkeypatch):
    """Behind a link, too; a device stays one."""
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("old", encoding="utf-8")
    page.chmod(0o600)
    link.symlink_to(page)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *paths: os.stat("/nowhere"))
        assert "page.html: No such file" in refused("explain", run, "one", "--html", link)
    assert page.read_text(encoding="utf-8") == "old"
    write_output(link, b"new")
    assert page.read_text(encoding="utf-8") == "new"
    assert page.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "page.html"]
    write_output(Path("/dev/null"), b"new")
    with pytest.raises(OSError, match="/dev/full"):
        write_output(Path("/dev/full"), b"new")
