"""Starting Python programs on several ranks of this machine, and whether that is possible at all.

`mpirun` runs a program to its end; within `started` a test can send signals to it. Neither leaves a process behind.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
LIMIT = 60  # seconds that a program may take
GRACE = 10  # seconds in which mpirun may end its ranks, before it is killed


def command() -> str | None:
    """The mpirun that belongs to the mpi4py installed: the one beside this Python, or else that in PATH."""
    return shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def environment(folder: str | Path) -> dict[str, str]:
    """The environment of an mpirun whose files are in `folder`; Open MPI wants to be asked twice whether root may."""
    return os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(folder),
                         "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@contextmanager
def started(ranks: int, *arguments: object) -> Iterator[tuple[subprocess.Popen, Callable[[], list[str]]]]:
    """Run Python with the arguments on each rank; the end of the block ends what still runs.

    The ranks may be more than there are cores. The block gets the process of mpirun, and what tells standard output and
    standard error so far, of mpirun and all ranks.
    """
    words = [str(command()), "-n", str(ranks), "--oversubscribe", "--bind-to", "none", sys.executable]
    # Open MPI makes sockets in its temporary folder, whose paths have to be short: pytest's are not.
    with TemporaryDirectory(prefix="mpi-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        files = Path(folder, "stdout"), Path(folder, "stderr")  # a pipe would be open as long as any rank lives
        with files[0].open("wb") as standard, files[1].open("wb") as error:
            process = subprocess.Popen([*words, *map(str, arguments)], env=environment(folder), start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=standard, stderr=error)
        try:
            yield process, lambda: [path.read_text(encoding="utf-8", errors="replace") for path in files]
        finally:
            _end(process)


def mpirun(ranks: int, *arguments: object) -> subprocess.CompletedProcess:
    """Run Python with the arguments on each rank, to its end.

    Raises:
        TimeoutError: it did not end in `LIMIT` seconds; all of its processes are gone.
    """
    with started(ranks, *arguments) as (process, output):
        try:
            return subprocess.CompletedProcess(process.args, process.wait(LIMIT), *output())
        except subprocess.TimeoutExpired as error:
            raise TimeoutError("\n".join([f"mpirun did not end within {LIMIT} s", *output()])) from error


def ranks_of(launcher: int) -> list[int]:
    """The processes that a launcher has started."""
    try:
        tasks = list(Path(f"/proc/{launcher}/task").iterdir())
        return [int(number) for task in tasks for number in (task / "children").read_text(encoding="ascii").split()]
    except OSError:  # it has ended
        return []


def runs(process: int) -> bool:
    """Whether a process is there, and is not one that has ended and that nobody has asked about."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


def no_mpi() -> str | None:
    """Why no test can start ranks here, in one line; None if two ranks start and know their numbers."""
    try:
        done = mpirun(2, "-c", "import sys; from mpi4py import MPI; sys.exit(MPI.COMM_WORLD.size != 2)")
    except (OSError, TimeoutError) as error:
        return str(error)
    return f"mpirun ended with status {done.returncode}: {done.stderr}" if done.returncode else None


def _end(process: subprocess.Popen) -> None:
    """End mpirun and its ranks, which are groups of their own: mpirun ends them; then it is killed with its group."""
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
