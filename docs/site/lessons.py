"""The lessons and exercises as executed notebooks: build/lessons/en, and build/lessons/ja with Japanese prose.

Those in build/handouts end with the question of the lesson, without its answer.

    python -m docs.site.lessons              (all)
    python -m docs.site.lessons 03 exercise  (those whose names begin so)

A script of examples/lessons is the one source of its notebook. Japanese prose, cell by cell, is in examples/lessons/ja.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from examples.lessons.story import cells

ROOT = Path(__file__).parents[2]
LESSONS = ROOT / "examples" / "lessons"
BUILT = ROOT / "build" / "lessons"
HANDOUTS = ROOT / "build" / "handouts"
LIMIT = 600  # seconds that a cell may take
METADATA = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python",
                              "pygments_lexer": "ipython3"}}


class LessonError(Exception):
    """What is wrong with a lesson, and where."""


def scripts() -> list[Path]:
    """The lessons, and then the exercises."""
    return [*sorted(LESSONS.glob("[0-9][0-9]_*.py")), *sorted(LESSONS.glob("exercise_*.py"))]


def helpers() -> list[Path]:
    """What the exercises import; a notebook finds it beside itself."""
    return [path for path in LESSONS.glob("[a-z]*.py") if path not in scripts() and path.stem != "story"]


def unprinted(prose: str, printed: str) -> list[str]:
    """The decimals that prose quotes and no cell prints; dates, versions and identifiers of papers are not decimals."""
    quoted = re.findall(r"(?<![\w.:])\d+\.\d+(?!\w|\.\d|:)", prose)
    return sorted(set(quoted) - set(re.findall(r"\d+\.\d+", printed)))


# --- Executing a script --------------------------------------------------------------------------------------


def notebook_of(script: Path) -> NotebookNode:
    """The script as a notebook that has not run, without the cell that tells the story in a terminal."""
    notebook = new_notebook(metadata=deepcopy(METADATA))
    for kind, line, text in cells(script):
        if kind != "program":
            new_cell = new_markdown_cell if kind == "markdown" else new_code_cell
            source = re.sub(r"^# (?=%matplotlib )", "", text.strip("\n"), flags=re.MULTILINE)
            notebook.cells.append(new_cell(source, id=f"line-{line}"))
    return notebook


def execute(script: Path) -> NotebookNode:
    """The notebook with its outputs, run by this Python in a folder of its own.

    Raises:
        LessonError: a cell failed, took too long, or ended the process.
    """
    notebook = notebook_of(script)
    place = script.name
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as settings:
        films: set[Path] = set()

        def started(cell: NotebookNode, cell_index: int) -> None:
            nonlocal place
            place = f"{script.name}, in the cell of {cell.id.replace('-', ' ')}"

        def add_films(cell: NotebookNode, **_: Any) -> None:
            """A film that the cell wrote, after what it printed: a notebook shows pictures only by itself."""
            for film in sorted(set(Path(folder).glob("runs/lessons/*.gif")) - films):
                films.add(film)
                data = {"image/gif": b64encode(film.read_bytes()).decode(), "text/plain": f"<{film.name}>"}
                cell.outputs.append(new_output("display_data", data))

        kernel = AsyncKernelManager(
            # This Python, whatever kernels the machine knows by the same name.
            kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            connection_file=str(Path(settings, "kernel.json")), transport="tcp" if os.name == "nt" else "ipc")
        client = NotebookClient(
            notebook, timeout=LIMIT, record_timing=False, coalesce_streams=True,
            resources={"metadata": {"path": folder}},
            km=kernel, on_cell_start=started, on_cell_executed=add_films)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(LESSONS)]), "IPYTHONDIR": settings,
                       "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("LESSON_UPDATES", None)  # it makes lessons short, and wrong
        try:
            client.execute(env=environment, cleanup_kc=True)
        except CellExecutionError as error:
            trace = re.sub(r"\x1b\[[\d;]*m", "", error.traceback)
            raise LessonError(f"{place}: {error.ename}: {error.evalue}\n{trace}") from None
        except CellTimeoutError:
            raise LessonError(f"{place}: still running after {LIMIT} s") from None
        except DeadKernelError:
            raise LessonError(f"{place}: the process of the notebook died") from None
    notebook.metadata = deepcopy(METADATA)
    return notebook


# --- Making a notebook of it ---------------------------------------------------------------------------------


def weave(notebook: NotebookNode, japanese: Path) -> NotebookNode:
    """The notebook with other prose: that of a file whose cells are separated by lines ``+++``.

    Raises:
        LessonError: the file has more or fewer cells of prose than the notebook.
    """
    texts = [text.strip() for text in re.split(r"(?m)^\+\+\+$", japanese.read_text(encoding="utf-8"))]
    woven = deepcopy(notebook)
    prose = [cell for cell in woven.cells if cell.cell_type == "markdown"]
    if len(texts) != len(prose):
        raise LessonError(f"{japanese.name} ({japanese.parent.name}) has {len(texts)} cells of prose, "
                          f"and the lesson has {len(prose)}")
    for cell, text in zip(prose, texts, strict=True):
        cell.source = text
    return woven


def check(notebook: NotebookNode, name: str) -> None:
    """A lesson shows its picture, and its prose quotes what it prints.

    Raises:
        LessonError: it does not.
    """
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    wrong = unprinted(prose, "".join(output.text for output in outputs if output.output_type == "stream"))
    if wrong:
        raise LessonError(f"{name}: the prose quotes {', '.join(wrong)}, which no cell prints")
    if not any("image/png" in output.get("data", {}) for output in outputs):
        raise LessonError(f"{name}: no cell shows a picture")


def describe(notebook: NotebookNode, alternative: str) -> None:
    """Give the cells with pictures a text for those who cannot see them, where MyST-NB looks for it, and fold the code
    that only draws: a page shows the picture, and its code to whoever asks.
    """
    for cell in notebook.cells:
        if any(kind.startswith("image/") for output in cell.get("outputs", []) for kind in output.get("data", {})):
            cell.metadata |= {"mystnb": {"image": {"alt": alternative}}, "tags": ["hide-input"]}


def without_answer(notebook: NotebookNode, end: int | None) -> NotebookNode:
    """The notebook up to its cell number `end`."""
    handout = deepcopy(notebook)
    handout.cells = handout.cells[:end]
    return handout


def answer(notebook: NotebookNode) -> int | None:
    """The number of the cell that begins the answer; an exercise has none."""
    return next((i for i, cell in enumerate(notebook.cells) if cell.source.startswith("## The answer")), None)


def title(notebook: NotebookNode) -> str:
    return str(notebook.cells[0].source.partition("\n")[0].lstrip("# "))


def digest(script: Path) -> str:
    """Of all that a notebook depends on: its script, the sources, the installed packages, this file."""
    sources = [script, *sorted(helpers()), LESSONS / "story.py", Path(__file__),
               *sorted(path for package in ("minigrad", "transformer") for path in (ROOT / package).rglob("*")
                       if path.is_file() and "__pycache__" not in path.parts)]
    versions = [sys.version, *sorted(f"{found.name} {found.version}" for found in distributions())]
    content = hashlib.sha256("\n".join(versions).encode())
    for path in sources:
        content.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return content.hexdigest()


def make(script: Path) -> str:
    """Write the notebooks of a script, one for each language that it has; what to tell about it.

    A notebook that nothing it depends on has changed since is not executed again.

    Raises:
        LessonError: the script failed, or prose and outputs do not fit.
    """
    start = time.perf_counter()
    english, mark = BUILT / "en" / f"{script.stem}.ipynb", BUILT / "en" / f"{script.stem}.digest"
    current = digest(script)
    if english.exists() and mark.exists() and mark.read_text() == current:
        notebook, told = nbformat.read(english, as_version=4), "unchanged"
    else:
        mark.unlink(missing_ok=True)
        notebook, told = execute(script), "executed"
        for cell in notebook.cells:
            for output in [output for output in cell.get("outputs", []) if output.get("name") == "stderr"]:
                sys.stderr.write(f"{script.stem}: {output.text}")  # for who builds, not for readers
                cell.outputs.remove(output)
    picture = re.search(rf"!\[([^]]+)\]\(images/{script.stem}\.", (LESSONS / "README.md").read_text(encoding="utf-8"))
    describe(notebook, picture[1] if picture else title(notebook))
    written = {english: notebook}
    japanese, prose = BUILT / "ja" / english.name, LESSONS / "ja" / f"{script.stem}.md"
    japanese.unlink(missing_ok=True)
    if prose.exists():
        written[japanese] = weave(notebook, prose)
        describe(written[japanese], title(written[japanese]))
    for path, content in written.items():
        if not script.stem.startswith("exercise"):
            check(content, f"{path.parent.name}/{script.stem}")
        nbformat.write(content, path)
        nbformat.write(without_answer(content, answer(notebook)), HANDOUTS / path.parent.name / path.name)
    mark.write_text(current)
    return f"{script.stem}: {told}, {time.perf_counter() - start:.0f} s, {len(written)} notebook(s)"


def build(names: tuple[str, ...] = ()) -> list[LessonError]:
    """Make the notebooks of all scripts, or of those whose names begin so, two at a time; what went wrong."""
    chosen = [script for script in scripts() if not names or script.stem.startswith(names)]
    if not chosen:
        return [LessonError(f"no lesson's name begins with {' or '.join(names)}")]
    for folder in [place / language for place in (BUILT, HANDOUTS) for language in ("en", "ja")]:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.*"):
            if path.stem not in [script.stem for script in scripts()]:
                path.unlink()
        for helper in helpers():
            shutil.copy(helper, folder)
    wrong = []
    with ThreadPoolExecutor(2) as pool:
        for running in [pool.submit(make, script) for script in chosen]:
            try:
                print(running.result(), flush=True)
            except LessonError as error:
                wrong.append(error)
    return wrong


if __name__ == "__main__":
    sys.exit("\n".join(map(str, build(tuple(sys.argv[1:])))) or None)
