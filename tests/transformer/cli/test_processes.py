"""The commands as processes: the terminal and pipes."""

import io
import os
import sys

import pytest

from tests.transformer.commands import SMALL, start
from transformer.cli import main
from transformer.training.checkpoints import load_run

posix = pytest.mark.skipif(sys.platform == "win32", reason="terminals, signals and descriptors of POSIX")


@posix
def test_on_a_terminal_there_is_a_prompt_and_an_answer_to_each_line(run):
    import pty

    controller, terminal = pty.openpty()
    process = start("translate", run, stdin=terminal)
    os.close(terminal)
    os.write(controller, b"one two\n")
    assert process.stdout.readline() == "一 二\n".encode()  # before the input ends
    os.write(controller, b"three\n\x04")
    output, errors = process.communicate(timeout=60)
    os.close(controller)
    assert (process.returncode, output) == (0, "三\n".encode())
    lines = errors.decode().split("> ")
    assert len(lines) == 4  # three prompts: the last is ended by Ctrl-D


@posix
def test_a_reader_that_stops_reading_is_no_error(run, monkeypatch):
    """Without buffers of Python, a stream takes a part of a text."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    with start("translate", run, "--batch-size", "1") as process:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "一\n".encode()
        process.stdout.close()
        process.stdin.write(b"one\n" * 3)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


@posix
@pytest.mark.parametrize("broken", ["closed", "gone"])
def test_a_training_outlives_its_streams(broken, tmp_path):
    """Closed from the beginning, or the terminal and the pipe are gone."""
    import pty

    controller, terminal = pty.openpty()
    reader, pipe = os.pipe()
    os.close(reader)
    os.close(controller)
    closed = {"preexec_fn": lambda: os.closerange(0, 3)} if broken == "closed" else {}
    process = start("train", *SMALL[:-1], "--steps", 4, "--valid-every", 2, "--out", tmp_path / "run",
                    "--profile", tmp_path / "trace.json", stdout=pipe, stderr=terminal, **closed)
    os.close(terminal)
    os.close(pipe)
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    assert load_run(tmp_path / "run", "latest")[0].progress.step == 4


def status(patch, streams, *command):
    """The exit status of a command that has these streams."""
    with patch.context() as block:
        for name, stream in streams.items():
            block.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in command])
    return caught.value.code or 0


@posix
def test_a_closed_standard_stream_is_named(run, monkeypatch, capsys):
    """Where it holds the result."""
    assert status(monkeypatch, {"stdout": None}, "info", run) == 2
    assert capsys.readouterr().err.startswith("Error: standard output is closed")
    assert status(monkeypatch, {"stderr": None}, "info", run) == 0
    assert status(monkeypatch, {"stdin": None}, "translate", run) == 2
    assert capsys.readouterr().err.startswith("Error: standard input is closed")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a full disk of Linux")
def test_a_result_that_a_full_disk_does_not_take(run, monkeypatch, capsys):
    with open("/dev/full", "w") as full:
        assert status(monkeypatch, {"stdout": full}, "info", run) == 2
    assert capsys.readouterr().err == "Error: standard input or output: No space left on device\n"


def test_what_the_output_cannot_encode_is_escaped(run, monkeypatch):
    output = io.BytesIO()
    streams = {"stdout": io.TextIOWrapper(output, encoding="latin-1")}
    assert status(monkeypatch, streams, "explain", run, "one", "--text") == 0
    assert b"\\u4e00" in output.getvalue()
