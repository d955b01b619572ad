"""One rank fails, or all: all end within seconds, with one line that says where and why, and the run goes on."""

import os
import signal
import socket
import time

import pytest

from tests.distributed.mpirun import mpirun, ranks_of, runs, started
from tests.distributed.trainings import COMMAND, OPTIONS, disturbed, on_one, on_ranks
from tests.transformer.runs import contents
from transformer.training.checkpoints import load_run

pytestmark = [pytest.mark.usefixtures("mpi"), pytest.mark.slow]

HOST = socket.gethostname()
INTACT = "(the last checkpoint, 00000004, is intact)"
TINY = ["--d-model", "8", "--heads", "2", "--layers", "1", "--d-ff", "8", "--steps", "2", "--quiet"]


def errors(lines):
    return [line for line in lines if not line.startswith(("step ", "note: ", "    "))]


@pytest.mark.parametrize(("ranks", "who", "fault", "status", "line"), [
    (3, "1", "lose_memory@6", 2, f"Error: rank 1 ({HOST}): out of memory; begin anew with a lower *{INTACT}"),
    (2, "1", "drift@6", 2, f"Error: rank 1 ({HOST}) and rank 0 ({HOST}) differ in weights; *{INTACT}"),
    (3, "all", "lose_numbers@6", 2, f"Error: the loss became nan by step 8; *{INTACT}"),
    (2, "1", "SIGSTOP@6", 2, f"Error: no answer for 4 s from rank 1 ({HOST}) {INTACT}"),
    (3, "0", "SIGSTOP@6", 2, f"Error: no answer for 4 s from rank 0 ({HOST})"),
], ids=lambda value: value if isinstance(value, str) and "@" in value else "")
def test_ranks_end_with_one_line(ranks, who, fault, status, line, tmp_path):
    out = tmp_path / "out"
    found, lines = disturbed(ranks, who, fault, "train", *OPTIONS, "--out", out)
    start, _, end = line.partition("*")
    [told] = errors(lines)
    assert found == status
    assert told.startswith(start)
    assert told.endswith(end)
    assert load_run(out, "latest")[0].progress.step == 4


@pytest.mark.parametrize("fault", ["SIGKILL@6", "leave@6", "SIGKILL"])
def test_a_rank_that_vanishes_ends_all(fault, tmp_path):
    """The launcher names it, and may end the others before they do."""
    out, began = tmp_path / "out", time.monotonic()
    status, lines = disturbed(3, "1", fault, "train", *OPTIONS, "--out", out)
    assert status != 0
    assert time.monotonic() - began < 30
    gone = f"Error: rank 1 ({HOST}) has ended without a word: it was killed, or its machine is out of memory"
    assert errors(lines) in ([], [f"{gone} {INTACT}"], [gone])
    if "@" in fault:
        on_one("train", *OPTIONS, "--out", tmp_path / "one")
        on_ranks(2, "train", "--out", out, "--resume", "--quiet")
        assert contents(out) == contents(tmp_path / "one")


@pytest.mark.parametrize(("who", "fault", "status"), [("0", "SIGINT@6", 130), ("2", "SIGTERM@6", 143),
                                                      ("all", "SIGTERM@6", 143)])
def test_a_signal_to_any_rank_stops_all_after_the_same_update(who, fault, status, tmp_path):
    out = tmp_path / "out"
    found, lines = disturbed(3, who, fault, "train", *OPTIONS, "--out", out)
    assert found == status
    assert errors(lines) == [f"stopped; go on with  python -m transformer train --out {out} --resume"]
    assert load_run(out, "latest")[0].progress.step == 6


def test_a_signal_that_mpirun_passes_on_leaves_the_time_to_save(tmp_path):
    out = tmp_path / "out"
    endless = [*OPTIONS, "--steps", "100000", "--valid-every", "100000"]
    with started(2, *COMMAND, "train", *endless, "--out", out) as running:
        wait_for(lambda: (out / "log.csv").exists())
        time.sleep(0.5)
        os.kill(running.process.pid, signal.SIGUSR1)
        assert running.process.wait(30) == 128 + signal.SIGUSR1
        assert f"stopped; go on with  python -m transformer train --out {out} --resume\n" in running.output()[1]
    assert load_run(out, "latest")[0].progress.step > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_signal_to_the_launcher_ends_all_and_the_run_goes_on(number, tmp_path):
    """It leaves them a fifth of a second, and drops what they write."""
    out = tmp_path / "out"
    with started(3, *COMMAND, "train", *OPTIONS, "--steps", "100000", "--out", out) as running:
        wait_for(lambda: (out / "latest").exists())
        ranks = ranks_of(running.process.pid)
        assert len(ranks) == 3
        os.kill(running.process.pid, number)
        assert running.process.wait(30) != 0
        wait_for(lambda: not any(runs(rank) for rank in ranks))
    step = load_run(out, "latest")[0].progress.step
    on_ranks(2, "train", "--out", out, "--resume", "--quiet", "--steps", step + 3)


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# --------------------------------------------------------------------------- at the start


@pytest.mark.parametrize(("who", "fault", "options", "line"), [
    ("all", "nothing", ["--stpes", "3"], "Error: No such option '--stpes'."),
    ("all", "nothing", ["--task", "copi"], "Error: Invalid value for '--task'"),
    ("2", "other_code", [], f"Error: rank 2 ({HOST}) and rank 0 ({HOST}) differ in the version of the code; "),
    ("all", "nothing", ["--seed", "{rank}"], f"Error: rank 1 ({HOST}) and rank 0 ({HOST}) differ in the options; "),
    ("1", "stop_early", [], f"Error: rank 1 ({HOST}): stopped"),
    ("all", "stop_early", [], "stopped; there is no checkpoint yet"),
])
def test_mistakes_end_all_ranks_at_the_start(who, fault, options, line, tmp_path):
    status, lines = disturbed(3, who, fault, "train", *OPTIONS, *options, "--out", tmp_path / "out")
    assert status != 0
    [told] = lines
    assert told.startswith(line)


def test_a_folder_that_holds_a_run_is_refused_as_by_one_process(tmp_path):
    out = tmp_path / "out"
    on_one("train", *OPTIONS, "--out", out)
    for options, line in ((OPTIONS, f"Error: {out}: already holds a training run; "),
                          (["--resume-from", "x", "--quiet"], f"Error: {out}: "),
                          (["--resume", "--seed", "3"], f"Error: {out}: a resumed run may not change --seed")):
        status, lines = disturbed(3, "1", "nothing", "train", *options, "--out", out)
        assert status == 2
        [told] = lines
        assert told.startswith(line)


@pytest.mark.parametrize(("name", "text", "problem"), [
    ("bad", b"a b\n\xff\n", "bad.1, line 2: not valid UTF-8"),
    ("missing", None, "missing.1: "),
    ("other", b"a b\na c\n", "and rank 0"),
])
def test_bad_data_of_one_rank_is_named(name, text, problem, tmp_path):
    for rank in range(3):
        (tmp_path / f"{name}.{rank}").write_bytes(b"a b\nb a\n")
    (tmp_path / f"{name}.1").unlink()
    if text is not None:
        (tmp_path / f"{name}.1").write_bytes(text)
    good, own = str(tmp_path / f"{name}.0"), str(tmp_path / f"{name}.{{rank}}")
    targets = tmp_path / "targets"
    targets.write_bytes(b"a b\nb a\n")
    status, lines = disturbed(3, "1", "nothing", "train", "--train", own, targets, "--valid", good, targets, *TINY,
                              "--out", tmp_path / "out")
    assert status == 2
    [told] = lines
    assert told.startswith(f"Error: rank 1 ({HOST})")
    assert problem in told


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("command", [("train", "--out", "run", "--train"), ("evaluate", "run", "--source")])
def test_ranks_do_not_share_a_pipe(command, tmp_path):
    """Each would get a part of its text, and wait for an end that another one has read."""
    pipe, text = tmp_path / "pipe", tmp_path / "text"
    os.mkfifo(pipe)
    text.write_text("a b\n")
    others = [pipe, "--valid", text, text] if command[0] == "train" else ["--target", pipe]
    status, lines = disturbed(2, "1", "nothing", *command, text, *others)
    assert status == 2
    assert lines == [f"Error: {pipe} is a pipe, which one process alone can read; several ranks need a file"]


# --------------------------------------------------------------------------- a program of one's own

PROGRAM = """
import sys, time
from mpi4py import MPI
import numpy as np
from transformer import Transformer, TransformerConfig
from transformer.training import DistributedGradients
model = Transformer(TransformerConfig.tiny(source_vocab_size=9, target_vocab_size=9))
ids = np.full((6, 4), 3)
with DistributedGradients(model, MPI.COMM_WORLD) as gradients:
    for step in range(3):
        if step == 2 and MPI.COMM_WORLD.rank == 1 and sys.argv[1] == "inside":
            raise KeyError("gone")
        gradients(ids, ids)
    if MPI.COMM_WORLD.rank != 1:
        gradients(ids, ids)
if sys.argv[1] == "outside":
    raise KeyError("gone")
"""


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_an_exception_in_a_program_of_ones_own_ends_all(where):
    done = mpirun(3, "-c", PROGRAM, where)
    assert done.returncode == 1
    assert f"rank 1 ({HOST}): KeyError: 'gone'" in done.stderr
