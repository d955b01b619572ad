"""The commands as processes: the terminal, pipes, Ctrl-C."""

import os
import signal
import sys
import time

import pytest

from tests.transformer.commands import SMALL, call, start
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
    os.write(controller, b"two " * 9 + b"\n")  # a mistake, and the session goes on
    os.write(controller, b"three\n\x04")
    output, errors = process.communicate(timeout=60)
    os.close(controller)
    assert (process.returncode, output) == (0, "三\n".encode())
    lines = errors.decode().split("> ")
    assert len(lines) == 5  # four prompts: the last is ended by Ctrl-D
    assert lines[2].startswith("line 2: 10 tokens with end-of-sentence")


@posix
def test_a_reader_that_stops_reading_is_no_error(run):
    with start("translate", run, "--batch-size", 1) as process:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "一\n".encode()
        process.stdout.close()
        process.stdin.write(b"two\n" * 3)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


@posix
def test_ctrl_c_saves_the_training_and_says_how_to_go_on(tmp_path):
    folder = tmp_path / "a run"
    process = start("train", *SMALL, "--steps", 100_000, "--valid-every", 2, "--out", folder)
    while not (folder / "latest").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"stopped; go on with  python -m transformer train --out '{folder}' --resume" in errors.decode()
    assert "Traceback" not in errors.decode()

    reached = load_run(folder, "latest")[0].progress["step"]
    result = call("train", "--out", folder, "--resume", "--steps", reached + 2, "--quiet")
    assert result.exit_code == 0, result.output
    assert load_run(folder, "latest")[0].progress["step"] == reached + 2


def test_ctrl_c_before_the_first_checkpoint(begun, tmp_path):
    result = call("train", *SMALL, "--out", tmp_path / "run")
    assert result.exit_code == 130
    assert result.stderr.endswith("stopped; there is no checkpoint yet\n")


@posix
def test_a_closed_standard_stream_is_named(run):
    process = start("translate", run, preexec_fn=lambda: os.close(0))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors.decode().startswith("Error: standard input is closed")
    assert errors.count(b"\n") == 1
