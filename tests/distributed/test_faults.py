"""One rank fails, or all: all end within seconds, with one line that says where and why, and the run goes on."""

import os
import signal
import socket
import time

import pytest

from tests.distributed.mpirun import mpirun, ranks_of, runs, started
from tests.distributed.trainings import COMMAND, OPTIONS, disturbed, on_one
from tests.transformer.commands import SIZES
from tests.transformer.runs import contents
from transformer.training.checkpoints import load_run

pytestmark = [pytest.mark.usefixtures("mpi"), pytest.mark.slow]

HOST = socket.gethostname()
INTACT = "(the last checkpoint, 00000004, is intact)"
STOPPED = "stopped; go on with  python -m transformer train --out *--resume"


def errors(lines):
    return [line for line in lines if not line.startswith(("step ", "note: ", "    "))]


@pytest.mark.parametrize(("ranks", "who", "fault", "status", "line", "step"), [
    (3, "1", "lose_memory@6", 2, f"Error: rank 1 ({HOST}): out of memory; begin anew with a lower *{INTACT}", 4),
    (2, "1", "drift@6", 2, f"Error: rank 1 ({HOST}) and rank 0 ({HOST}) differ in weights; *{INTACT}", 4),
    (3, "all", "lose_numbers@6", 2, f"Error: the loss became nan by step 8; *{INTACT}", 4),
    (2, "1", "SIGSTOP@6", 2, f"Error: no answer for 4 s from rank 1 ({HOST}) {INTACT}", 4),
    (3, "0", "SIGSTOP@6", 2, f"Error: no answer for 4 s from rank 0 ({HOST})", 4),
    (3, "0", "SIGINT@6", 130, STOPPED, 6),
    (3, "2", "SIGTERM@6", 143, STOPPED, 6),
    (3, "all", "SIGTERM@6", 143, STOPPED, 6),
], ids=lambda value: value if isinstance(value, str) and "@" in value else "")
def test_ranks_end_with_one_line(ranks, who, fault, status, line, step, tmp_path):
    """After the same update, if a signal came to any of them."""
    out = tmp_path / "out"
    found, lines = disturbed(ranks, who, fault, "train", *OPTIONS, "--out", out)
    start, _, end = line.partition("*")
    [told] = errors(lines)
    assert found == status
    assert told.startswith(start)
    assert told.endswith(end)
    assert load_run(out, "latest")[0].progress.step == step


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
        on_one("train", "--out", out, "--resume", "--quiet")
        assert contents(out) == contents(tmp_path / "one")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1])
def test_a_signal_to_the_launcher_ends_all_and_the_run_goes_on(number, tmp_path):
    """It leaves them a fifth of a second, and drops what they write; SIGUSR1 it passes on, and they save."""
    out = tmp_path / "out"
    with started(3, *COMMAND, "train", *OPTIONS, "--steps", "100000", "--out", out) as (process, output):
        wait_for(lambda: (out / "latest").exists())
        ranks = ranks_of(process.pid)
        assert len(ranks) == 3
        process.send_signal(number)
        assert process.wait(30) != 0
        wait_for(lambda: not any(runs(rank) for rank in ranks))
        if number == signal.SIGUSR1:
            assert process.returncode == 128 + number
            assert f"stopped; go on with  python -m transformer train --out {out} --resume\n" in output()[1]
    step = load_run(out, "latest")[0].progress.step
    on_one("train", "--out", out, "--resume", "--quiet", "--steps", step + 3)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# --------------------------------------------------------------------------- at the start


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, a pipe, a good text, and those of two ranks, of which rank 1 has a bad one, none, or another."""
    folder = tmp_path_factory.mktemp("start")
    on_one("train", *OPTIONS, "--out", folder / "run")
    for name, own in (("bad", b"a b\n\xff\n"), ("missing", None), ("other", b"a b\na c\n")):
        for rank, text in enumerate((b"a b\nb a\n", own)):
            if text is not None:
                (folder / f"{name}.{rank}").write_bytes(text)
    (folder / "good").write_bytes(b"a b\nb a\n")
    os.mkfifo(folder / "pipe")
    return folder


RANK_1, COPY = f"Error: rank 1 ({HOST})", " ".join(map(str, OPTIONS))
TEXT = f"--valid bad.0 good {' '.join(map(str, SIZES))} --steps 2 --quiet"


@pytest.mark.parametrize(("who", "fault", "command", "line"), [
    ("all", "nothing", f"train {COPY} --out out --stpes 3", "Error: No such option '--stpes'."),
    ("all", "nothing", f"train {COPY} --out out --task copi", "Error: Invalid value for '--task'"),
    ("1", "other_code", f"train {COPY} --out out",
     f"{RANK_1} and rank 0 ({HOST}) differ in the version of the code; "),
    ("all", "nothing", f"train {COPY} --out out --seed {{rank}}", f"{RANK_1} and rank 0 ({HOST}) differ in the "),
    ("1", "stop_early", f"train {COPY} --out out", f"{RANK_1}: stopped"),
    ("all", "stop_early", f"train {COPY} --out out", "stopped; there is no checkpoint yet"),
    ("all", "nothing", f"train {COPY} --out run", "Error: run: already holds a training run; "),
    ("all", "nothing", "train --out run --resume-from x --quiet", "Error: run: "),
    ("all", "nothing", "train --out run --resume --seed 3", "Error: run: a resumed run may not change --seed"),
    ("all", "nothing", f"train --train bad.{{rank}} good --out out {TEXT}", f"{RANK_1}: *bad.1, line 2"),
    ("all", "nothing", f"train --train missing.{{rank}} good --out out {TEXT}", f"{RANK_1}: cannot *missing.1"),
    ("all", "nothing", f"train --train other.{{rank}} good --out out {TEXT}", f"{RANK_1} and rank 0 ({HOST}) differ"),
    ("all", "nothing", f"train --train pipe good --out out {TEXT}", "Error: pipe is a pipe, which one process alone"),
    ("all", "nothing", "evaluate run --source good --target pipe", "Error: pipe is a pipe, which one process alone"),
])
def test_mistakes_end_all_ranks_at_the_start(who, fault, command, line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    status, lines = disturbed(2, who, fault, *command.split())
    assert status != 0
    [told] = lines
    start, _, then = line.partition("*")
    assert told.startswith(start)
    assert then in told
    assert not (folder / "out").exists()


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
    if MPI.COMM_WORLD.rank == 2:
        time.sleep(0.5)
    if MPI.COMM_WORLD.rank != 1:
        gradients(ids, ids)
if sys.argv[1] == "outside":
    raise KeyError("gone")
"""


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_an_exception_in_a_program_of_ones_own_ends_all(where):
    """Outside, rank 2 sends to rank 0 after that has given up and freed its arrays."""
    done = mpirun(3, "-c", PROGRAM, where)
    assert done.returncode == 1
    assert f"rank 1 ({HOST}): KeyError: 'gone'" in done.stderr


CAUGHT = """
import time
from mpi4py import MPI
import numpy as np
from transformer.distributed.ranks import RankError, Ranks
ranks = Ranks(MPI.COMM_WORLD)
if ranks.rank == 2:
    time.sleep(0.3)
if ranks.rank == 1:
    ranks.fail("gone", "x" * 300_000)
else:
    try:
        ranks.wait(*ranks.all_gather(np.ones((3, 3_000_000))))
    except RankError as error:
        print(error)
print("ends well")
"""


def test_a_program_that_catches_the_error_ends_well():
    """Rank 2 sends to rank 0 after that has given up, and rank 1 sends what nobody reads to its end."""
    done = mpirun(3, "-c", CAUGHT)
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == ["ends well"] * 3 + [f"rank 1 ({HOST}): gone"] * 2
