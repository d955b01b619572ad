"""The job files. Schedulers are not here, so stand-ins take their place; MPI starts what it can start on one machine.

Slurm's srun is a program that writes down what it was started with. The machines of a hostfile are this one, which a
stand-in for ssh starts daemons on, with the empty environment of a new machine.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.distributed.mpirun import ROOT, command, started
from transformer.cli import main

JOBS = ROOT / "examples/jobs"
MPIJOB = yaml.safe_load((JOBS / "mpijob.yaml").read_text(encoding="utf-8"))
LAUNCHER, WORKER = (MPIJOB["spec"]["mpiReplicaSpecs"][name] for name in ("Launcher", "Worker"))
OPERATORS_HOSTFILE = "/etc/mpi/hostfile"

runs = pytest.mark.parametrize("resumed", [False, True], ids=["new", "resumed"])
bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def container(replica: dict) -> dict:
    """The one container of a replica of the MPIJob."""
    [found] = replica["template"]["spec"]["containers"]
    return found


def program(path: Path, text: str) -> None:
    """A shell script that can be started."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def understood(words: list[str], *, resumed: bool) -> dict:
    """The parameters of a command that trains, read by the command itself; it goes on if there is a checkpoint."""
    assert words[:4] == ["python", "-m", "transformer", "train"]
    with main.commands["train"].make_context("train", words[4:]) as context:
        assert context.params["resume"] is resumed
        return context.params


def begin(folder: Path, *, resumed: bool) -> None:
    """Make the run's folder as a training leaves it, or none."""
    if resumed:
        (folder / "runs/enja").mkdir(parents=True)
        (folder / "runs/enja/latest").write_text("00000400\n", encoding="ascii")


# --- Slurm -------------------------------------------------------------------------------------------------


def sbatch_options() -> argparse.Namespace:
    """The options in the lines #SBATCH, as sbatch reads them: up to the first command, and a whole line each."""
    def like(pattern: str):
        def check(value: str) -> str:
            if not re.fullmatch(pattern, value):
                raise ValueError(value)
            return value
        return check

    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for name in ("job-name", "output"):
        parser.add_argument(f"--{name}", type=like(r"[\w%.-]+"), required=True)
    for name in ("nodes", "ntasks-per-node", "cpus-per-task"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--time", type=like(r"(\d+-)?\d\d:\d\d:\d\d"), required=True)
    parser.add_argument("--signal", type=like(r"([RB]+:)?[A-Z]+\d?@\d+"), required=True)
    parser.add_argument("--open-mode", choices=["append", "truncate"], required=True)
    parser.add_argument("--requeue", action="store_true", required=True)
    read = []
    for line in (JOBS / "slurm.sh").read_text(encoding="utf-8").splitlines():
        if line.startswith("#SBATCH"):
            read += shlex.split(line.removeprefix("#SBATCH"))
        elif line and not line.startswith("#"):
            break
    return parser.parse_args(read)


@bash
@runs
@pytest.mark.parametrize(("status", "state", "requeued"), [
    (0, "RUNNING", False), (1, "RUNNING", False), (143, "RUNNING", True), (143, "COMPLETING", False)],
    ids=["ended", "failed", "out-of-time", "cancelled"])
def test_slurm_starts_or_resumes_and_comes_back_after_the_time_limit_alone(tmp_path, resumed, status, state, requeued):
    begin(tmp_path, resumed=resumed)
    options = sbatch_options()
    program(tmp_path / "srun", f'printf "%s\\n" "$@" > {tmp_path}/started; exit {status}')
    program(tmp_path / "squeue", f"echo {state}")
    program(tmp_path / "scontrol", f'echo "$@" > {tmp_path}/controlled')
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "71",
                   "SLURM_CPUS_PER_TASK": str(options.cpus_per_task)}
    done = subprocess.run(["bash", JOBS / "slurm.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (status, "")
    words = (tmp_path / "started").read_text(encoding="utf-8").splitlines()
    first = words.index("python")
    assert words[:first] == ["--mpi=pmix", f"--cpus-per-task={options.cpus_per_task}"]
    assert understood(words[first:], resumed=resumed)["threads"] == options.cpus_per_task
    assert (tmp_path / "controlled").exists() is requeued
    if requeued:
        assert (tmp_path / "controlled").read_text(encoding="utf-8") == "requeue 71\n"


# --- mpirun, by itself and in an MPIJob --------------------------------------------------------------------


def ranks_of(folder: Path, script: str, hosts: list[str], *, resumed: bool) -> list[dict[str, str]]:
    """Run a script that calls mpirun for the hosts; for each rank what `python` saw: its place and its arguments.

    The ranks do not use MPI: as several machines, one machine would have several parts of the same shared memory.
    """
    begin(folder, resumed=resumed)
    seen, own = folder / "seen", folder / "bin"
    seen.mkdir()
    own.mkdir()
    program(own / "python", f'place={seen}/$OMPI_COMM_WORLD_RANK; printf "%s\\n" "$HOST" "$OMPI_COMM_WORLD_LOCAL_RANK" '
                            '"$OMPI_COMM_WORLD_SIZE" python "$@" > $place.new && mv $place.new $place.done')
    program(own / "ssh", """\
while [ "${1#-}" != "$1" ]; do if [ "$1" = -o ]; then shift; fi; shift; done
host=$1; shift; mkdir -p "$TMPDIR/$host"
exec env -i HOST="$host" HOME="$HOME" PATH=/usr/bin:/bin TMPDIR="$TMPDIR/$host" OMPI_ALLOW_RUN_AS_ROOT=1 \\
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 sh -c "$*\"""")
    (folder / "hosts").write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
    environment = {"PATH": f"{own}:{Path(command()).parent}:/usr/bin:/bin", "PRTE_MCA_plm_ssh_agent": str(own / "ssh")}
    environment |= {entry["name"]: entry["value"] for entry in container(LAUNCHER)["env"]}
    ranks = sum(int(host.partition("slots=")[2]) for host in hosts)
    with started(0, program=["bash", "-c", f"cd {folder} && {script}"], env=environment) as running:
        # Not until its end: with several daemons on one machine, mpirun sometimes waits for one that has gone.
        deadline = time.monotonic() + 60
        while len(list(seen.glob("*.done"))) < ranks and running.process.poll() is None:
            assert time.monotonic() < deadline, running.output()
            time.sleep(0.05)
        output = running.output()
    files = sorted(seen.glob("*.done"))
    assert [path.stem for path in files] == [str(rank) for rank in range(ranks)], output
    return [dict(zip(("host", "local", "size", "words"), path.read_text(encoding="utf-8").split("\n", 3), strict=True))
            for path in files]


def check_ranks(ranks: list[dict[str, str]], hosts: list[str], *, resumed: bool) -> int:
    """Each host has as many ranks as slots, all with the same command; gives their threads."""
    found = [(rank["host"], int(rank["local"])) for rank in ranks]
    slots = [(host.split()[0], int(host.partition("slots=")[2])) for host in hosts]
    assert sorted(found) == [(host, local) for host, number in slots for local in range(number)]
    [size], [words] = {rank["size"] for rank in ranks}, {rank["words"] for rank in ranks}
    assert int(size) == len(ranks)
    return understood(words.splitlines(), resumed=resumed)["threads"]


@pytest.fixture
def open_mpi(mpi) -> None:
    """Skip the test without the mpirun that the job files are written for."""
    version = subprocess.run([command(), "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Open MPI\) (\d+)", version)
    if found is None or int(found[1]) < 5:
        pytest.skip(f"the job files are for Open MPI 5, and here is {version.strip().splitlines()[:1]}")


@pytest.mark.usefixtures("open_mpi")
@runs
def test_mpirun_starts_a_rank_in_each_slot_of_the_hostfile(tmp_path, resumed):
    hosts = (JOBS / "hosts").read_text(encoding="utf-8").splitlines()
    ranks = ranks_of(tmp_path, f"exec bash {JOBS}/mpirun.sh", hosts, resumed=resumed)
    check_ranks(ranks, hosts, resumed=resumed)


@pytest.mark.usefixtures("open_mpi")
@runs
def test_the_launcher_of_the_mpijob_starts_a_rank_in_each_slot_of_the_workers(tmp_path, resumed):
    name, slots = MPIJOB["metadata"]["name"], MPIJOB["spec"]["slotsPerWorker"]
    hosts = [f"{name}-worker-{index}.{name}-worker.default.svc slots={slots}" for index in range(WORKER["replicas"])]
    assert container(LAUNCHER)["command"] == ["bash", "-c"]
    [script] = container(LAUNCHER)["args"]
    assert OPERATORS_HOSTFILE in script
    ranks = ranks_of(tmp_path, script.replace(OPERATORS_HOSTFILE, "hosts"), hosts, resumed=resumed)
    threads = check_ranks(ranks, hosts, resumed=resumed)
    assert container(WORKER)["resources"]["limits"]["cpu"] == threads * slots


# --- The fields of an MPIJob -------------------------------------------------------------------------------

# Of kubeflow.org/v2beta1 and of pods, those that are used: what a field takes, or the fields below it.
POD = {"containers": [{"name": str, "image": str, "securityContext": {"runAsUser": int}, "workingDir": str,
                       "env": [{"name": str, "value": str}], "command": [str], "args": [str],
                       "resources": {"limits": {"cpu": int, "memory": str}},
                       "volumeMounts": [{"name": str, "mountPath": str}]}],
       "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str}}]}
REPLICA = {"replicas": int, "restartPolicy": ("Never", "OnFailure"), "template": {"spec": POD}}
FIELDS = {"apiVersion": ("kubeflow.org/v2beta1",), "kind": ("MPIJob",), "metadata": {"name": str},
          "spec": {"slotsPerWorker": int, "sshAuthMountPath": str,
                   "runPolicy": {"cleanPodPolicy": ("None", "Running", "All"), "backoffLimit": int},
                   "mpiReplicaSpecs": {"Launcher": REPLICA, "Worker": REPLICA}}}


def check_fields(found: object, known: object, where: str) -> None:
    if isinstance(known, dict):
        assert isinstance(found, dict), where
        for name, value in found.items():
            assert name in known, f"{where} has no field {name}"
            check_fields(value, known[name], f"{where}.{name}")
    elif isinstance(known, list):
        assert isinstance(found, list), where
        for index, value in enumerate(found):
            check_fields(value, known[0], f"{where}[{index}]")
    elif isinstance(known, tuple):
        assert found in known, where
    else:
        assert type(found) is known, where


def test_the_mpijob_has_known_fields_and_mounts_the_volumes_that_it_names():
    check_fields(MPIJOB, FIELDS, "MPIJob")
    assert MPIJOB.keys() == FIELDS.keys()
    assert LAUNCHER["replicas"] == 1
    for replica in (LAUNCHER, WORKER):
        volumes = {volume["name"] for volume in replica["template"]["spec"]["volumes"]}
        assert {mount["name"] for mount in container(replica)["volumeMounts"]} == volumes
    # The keys are for the user who runs the daemon of ssh.
    assert Path(MPIJOB["spec"]["sshAuthMountPath"]).parent == Path(container(WORKER)["command"][-1]).parent
