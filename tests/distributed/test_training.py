"""Several ranks make the updates that one process makes: to the last bit, with the same number of shards."""

import json

import pytest

from tests.distributed.mpirun import mpirun
from tests.distributed.trainings import OPTIONS, disturbed, on_one, on_ranks
from tests.transformer.runs import contents
from transformer.distributed import launch

pytestmark = pytest.mark.usefixtures("mpi")


@pytest.mark.parametrize(("ranks", "where", "options"), [
    (2, "in_small_buckets", ["--shards", "2"]),
    (2, "on_gpus", ["--shards", "3", "--device", "cuda"]),
    pytest.param(3, "on_gpus", ["--shards", "7", "--device", "cuda"], marks=pytest.mark.slow),  # two GPUs
    pytest.param(2, "in_threads", ["--threads", "2"], marks=pytest.mark.slow),
    pytest.param(3, "nothing", ["--accumulate", "2", "--keep", "2"], marks=pytest.mark.slow),
    pytest.param(3, "nothing", ["--shards", "8", "--batch-tokens", "30"], marks=pytest.mark.slow),  # fewer sentences
    pytest.param(2, "nothing", ["--shards", "1"], marks=pytest.mark.slow),
    pytest.param(2, "nothing", ["--metric", "bleu", "--tokens", "bpe", "--vocab-size", "270"], marks=pytest.mark.slow),
], ids=str)
def test_ranks_train_as_one_process(ranks, where, options, tmp_path):
    """The stand-in for CuPy has two GPUs, which the ranks take in turn."""
    for number in (1, ranks):
        status, lines = disturbed(number, "all", where, "train", *OPTIONS, *options, "--out", tmp_path / str(number))
        assert status == 0, lines
    assert contents(tmp_path / str(ranks)) == contents(tmp_path / "1")


def test_ranks_of_a_host_take_its_gpus_in_turn(stand_in, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    taken = []
    for local in range(4):
        monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", str(local))
        taken.append(launch.own_device("cuda"))
    assert taken == ["cuda:0", "cuda:1"] * 2
    assert (launch.own_device("cuda:1"), launch.own_device("cpu")) == ("cuda:1", "cpu")


@pytest.mark.slow
def test_a_run_goes_on_with_any_number_of_ranks(tmp_path):
    """2 → 1 → 3 ranks, stopped in the midst of an epoch, to the bits of one process that was never stopped."""
    one, out = tmp_path / "one", tmp_path / "out"
    on_one("train", *OPTIONS, "--out", one)
    status, lines = disturbed(2, "1", "SIGTERM@3", "train", *OPTIONS, "--out", out)
    lines = [line for line in lines if not line.startswith("note: ")]
    assert (status, lines) == (143, [f"stopped; go on with  python -m transformer train --out {out} --resume"])
    on_one("train", "--out", out, "--resume", "--quiet", "--steps", 6)
    on_ranks(3, "train", "--out", out, "--resume", "--quiet", "--steps", 10)
    found, expected = contents(out), contents(one)
    # A stop adds a validation: the last one counts.
    assert found["latest model"] == expected["latest model"]
    assert found["latest optimizer"] == expected["latest optimizer"]


@pytest.mark.slow
def test_ranks_translate_and_evaluate_as_one_process(tmp_path):
    out = tmp_path / "run"
    on_one("train", *OPTIONS, "--steps", "30", "--out", out)
    command = "evaluate", out, "--count", "7", "--beam", "3", "--batch-size", "2"
    alone, shared = map(json.loads, (on_one(*command), on_ranks(3, *command)))
    assert shared | {"seconds": 0} == alone | {"seconds": 0}
    source = tmp_path / "source"
    shell = "import runpy, sys; sys.stdin = open(sys.argv.pop(1)); runpy.run_module('transformer', run_name='__main__')"

    def translated(ranks, text):
        source.write_bytes(text)
        return mpirun(ranks, "-c", shell, source, "translate", out, "--batch-size", "2")

    lines = b"".join(b"a b c d"[:length] + b"\n" for length in range(1, 8))
    assert translated(3, lines).stdout == translated(1, lines).stdout
    failed = translated(2, b"a b\n\xff\n")  # the first rank reads for all: its mistake is that of the command
    assert (failed.returncode, len(failed.stdout.splitlines())) == (2, 1)
    assert "Error: standard input, line 2: not valid UTF-8" in failed.stderr


@pytest.mark.slow
def test_the_first_rank_alone_reads_and_writes_the_run(tmp_path, monkeypatch):
    """The others are where they can neither see nor write its folder; each message appears once."""
    monkeypatch.chdir(tmp_path)
    on_one("train", *OPTIONS, "--out", "one")
    assert disturbed(3, "1,2", "elsewhere", "train", *OPTIONS, "--steps", "7", "--out", "run")[0] == 0
    status, lines = disturbed(3, "1,2", "elsewhere", "train", "--out", "run", "--resume", "--steps", "10")
    assert status == 0
    assert [line[:11] for line in lines] == ["step      8", "step     10"]
    assert contents(tmp_path / "run")["latest model"] == contents(tmp_path / "one")["latest model"]


@pytest.mark.slow
def test_commands_without_work_for_ranks_run_once(tmp_path):
    on_one("train", *OPTIONS, "--out", tmp_path / "run")
    assert on_ranks(2, "info", tmp_path / "run") == on_one("info", tmp_path / "run")
    done = mpirun(2, "-m", "transformer", "info", tmp_path / "none")
    assert (done.returncode, done.stderr.count("Error: ")) == (2, 1)
