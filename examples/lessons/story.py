"""A lesson that runs as a program tells its story: the prose of each cell, then what the code under it prints.

The lessons are scripts in percent format, which Jupyter, VS Code, PyCharm and Spyder show as notebooks. Run by
``python examples/lessons/01_a_derivative_by_hand.py``, a lesson calls `tell`, which runs its cells one after the other.
"""

import contextlib
import io
import re
import shutil
import sys
import traceback
import unicodedata
from pathlib import Path
from types import TracebackType
from typing import TextIO

WIDTH = 100  # no line of prose is longer, however wide the terminal
PROGRAM = ' tags=["active-py"]'  # the cell that calls `tell`: jupytext leaves it out of the code of a notebook


def cells(path: Path) -> list[tuple[str, int, str]]:
    """The cells of a script in percent format: "markdown", "code" or "program", the line of its first text, its text.

    Raises:
        ValueError: text stands before the first cell, a cell has another kind, or a line of prose is no comment.
    """
    start, *parts = re.split(r"(?m)^# %%(.*)\n", path.read_text(encoding="utf-8"))
    if start:
        raise ValueError(f"{path.name}: text before the first cell")
    found, line = [], 1
    for mark, text in zip(parts[::2], parts[1::2], strict=True):
        kind = {" [markdown]": "markdown", "": "code", PROGRAM: "program"}.get(mark)
        if kind is None:
            raise ValueError(f"{path.name}, line {line}: a cell of an unknown kind: # %%{mark}")
        if kind == "markdown":
            wrong = [number for number, content in enumerate(text.splitlines(), line + 1)
                     if content and not re.match("# |#$", content)]
            if wrong:
                raise ValueError(f"{path.name}, line {wrong[0]}: prose begins with '# '")
            prose = re.sub("(?m)^# ?", "", text).strip("\n")
        found.append((kind, line + 1, prose if kind == "markdown" else text))
        line += 1 + text.count("\n")
    return found


# --------------------------------------------------------------------------- prose as text

SIGNS = {"sum": "Σ", "partial": "∂", "top": "ᵀ", "circ": "∘", "Rightarrow": " ⇒ ", "leftarrow": "←", "langle": "⟨",
         "rangle": "⟩", "varepsilon": "ε", "log": "log", "max": "max", "tanh": "tanh", "Big": "", "qquad": "\t",
         "quad": "\t"}


def sign(macro: re.Match[str]) -> str:
    r"""The text of a macro without arguments: ``\sum`` → Σ, ``\delta`` → δ. One that is not known stays."""
    name, space = macro.groups()
    with contextlib.suppress(KeyError):
        text = SIGNS[name] if name in SIGNS else unicodedata.lookup(f"Greek small letter {name}")
        return text + ("" if text in "∂δ⟨" else space)  # δ A is one thing: δA
    return macro[0]


def grouped(text: str, simple: str) -> str:
    """The text, in parentheses unless all of it matches."""
    text = text.strip()
    return text if re.fullmatch(simple, text) else f"({text})"


def fraction(macro: re.Match[str]) -> str:
    """A fraction on one line, with a dot between it and a factor beside it."""
    before, after = macro.string[:macro.start()], macro.string[macro.end():]
    return ((" · " if re.search(r"[\w)]$", before) else "")
            + grouped(macro[1], r"[^ −+]+") + "/" + grouped(macro[2], r"[∂δ√]?\w+")
            + (" · " if re.match(r"[\w(\\∂]", after) else ""))


def formula(tex: str) -> str:
    r"""A formula as text: ``\frac{dL}{dy} = 2(y - t)^2`` → dL/dy = 2(y − t)²."""
    text = re.sub(r"\\[,;! ]", " ", " ".join(tex.split())).replace("-", "−")
    text = re.sub(r"\\(?:mathrm|text)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\(?!frac|sqrt|hat|underbrace)([A-Za-z]+)(\s*)", sign, text)
    text = text.replace("^ᵀ", "ᵀ").replace("^2", "²")
    before = ""
    while text != before:  # from the inside out
        before = text
        text = re.sub(r"\\hat\{([^{}])\}", "\\1\u0302", text)
        text = re.sub(r"\\sqrt\{([^{}]*)\}", lambda m: "√" + grouped(m[1], "\\w+\u0302?"), text)
        text = re.sub(r"\\underbrace\{([^{}]*)\}_\{([^{}]*)\}", r"[\1: \2]", text)
        text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", fraction, text)
        text = re.sub(r"(?<!\})_\{([^{}]*)\}", lambda m: "_" + grouped(m[1], r"[\w,]+"), text)
        text = re.sub(r"\^\{([^{}]*)\}", lambda m: "^" + grouped(m[1], r"\w"), text)
    return re.sub(" *\t *", "   ", re.sub(" +", " ", text)).strip()


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: two for each Japanese character."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wrap(text: str, width: int, first: str = "", later: str = "") -> str:
    """The words in lines of at most `width` columns; `first` begins the first line, `later` the others."""
    lines: list[str] = []
    line = first
    for word in text.split():
        if line.strip() and line != first and columns(line) + columns(word) > width:
            lines, line = [*lines, line.rstrip()], later
        line += word + " "
    return "\n".join([*lines, line.rstrip()])


def in_lines(parts: list[str], width: int) -> str:
    """The parts of a formula, indented, in lines of at most `width` columns; a part is never broken."""
    lines = ["    " + parts[0]]
    for part in parts[1:]:
        fits = columns(lines[-1]) + 3 + columns(part) <= width
        lines = [*lines[:-1], f"{lines[-1]}   {part}"] if fits else [*lines, "    " + part]
    return "\n".join(lines)


def readable(prose: str, width: int) -> str:
    """Markdown as text for a terminal: headings underlined, paragraphs and items wrapped, formulas indented."""
    shown = []
    for block in re.split(r"\n\s*\n|(?<=\$\$)\n(?=\$\$)", prose):
        if block.startswith("#"):
            marks, title = block.split(maxsplit=1)
            shown.append(f"{title}\n{('=' if marks == '#' else '-') * columns(title)}")
        elif block.startswith("$$"):
            formulas = re.findall(r"(?s)\$\$(.*?)\$\$", block)
            shown.append("\n".join(in_lines(formula(tex).split("   "), width) for tex in formulas))
        else:
            block = re.sub(r"\$([^$]+)\$", lambda m: formula(m[1]), block)
            block = re.sub(r"\[([^]]+)\]\(([^)]+)\)", r"\1 (\2)", block)
            first, later = ("- ", "  ") if block.startswith("- ") else ("", "")
            items = re.split(r"(?m)^- ", block)[1:] if first else [block]
            shown.append("\n".join(wrap(item, width, first, later) for item in items))
    return "\n\n".join(shown)


# --------------------------------------------------------------------------- the program


class Indented(io.TextIOBase):
    """A stream that writes to another one, each line four columns to the right."""

    def __init__(self, target: TextIO) -> None:
        self.target, self.used, self.begun = target, False, False

    def write(self, text: str) -> int:
        """Write; a line may come in several pieces."""
        for piece in text.splitlines(keepends=True):
            self.target.write(piece if self.begun or piece == "\n" else f"    {piece}")
            self.used, self.begun = True, not piece.endswith("\n")
        return len(text)

    def flush(self) -> None:
        """Hand on what has been written."""
        self.target.flush()


def show_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback that begins in the lesson, after what the lesson has printed."""
    sys.stdout.flush()
    steps = trace
    while steps and steps.tb_frame.f_code.co_filename != __file__:
        steps = steps.tb_next
    while steps and steps.tb_frame.f_code.co_filename == __file__:
        steps = steps.tb_next
    traceback.print_exception(kind, error, steps or trace)


def tell() -> None:
    """Run the cells of the lesson that was started as a program, each after its prose; then end the program.

    Does nothing in any other program: in a notebook, under a test, or where the lesson is imported.
    """
    main = sys.modules["__main__"]
    path = Path(getattr(main, "__file__", None) or "")
    if path.resolve().parent != Path(__file__).resolve().parent or hasattr(sys, "ps1"):
        return
    sys.excepthook = show_error
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that lacks a character
    width = min(WIDTH, shutil.get_terminal_size().columns)
    for kind, line, text in cells(path):
        if kind == "markdown":
            print(readable(text, width), end="\n\n", flush=True)
        elif kind == "code":
            code = compile("\n" * (line - 1) + text, str(path), "exec")
            with contextlib.redirect_stdout(Indented(sys.stdout)) as output:
                exec(code, vars(main))
            if output.used:
                print()
    for picture in sorted(Path("runs/lessons").glob(f"{path.name[:2]}_*")):
        print(f"Written: {picture}")
    sys.exit()
