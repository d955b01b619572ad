"""Text for people: aligned tables, and numbers with units."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence


def text_width(text: str) -> int:
    """The cells that `text` takes in a terminal: two for a wide character, none for a combining one."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shorten(text: str, width: int) -> str:
    """`text`, cut to `width` cells with an ellipsis if it is longer."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) >= width:
        text = text[:-1]
    return text + "…"


def table(header: Sequence[str], rows: Sequence[Sequence[str] | str], right: Collection[int] = (),
          width: int | None = None, flexible: Mapping[int, float] | None = None,
          cut: Mapping[int, Callable[[str, int], str]] | None = None) -> str:
    """`rows` under `header`, each column as wide as its widest cell; a row that is a string is a heading.

    Args:
        right: the columns that are aligned to the right.
        width: of the whole; while it is exceeded, one of the `flexible` columns gives way.
        flexible: the weight of those columns: they come to widths in proportion, where they have to shrink.
        cut: how the cells of a column are shortened, where not at their ends.
    """
    cells = [header, *[row for row in rows if not isinstance(row, str)]]
    widths = [max(text_width(row[i]) for row in cells) for i in range(len(header))]
    if width is not None and flexible:
        for _ in range(sum(widths) + 2 * (len(widths) - 1) - width):
            widest = max(flexible, key=lambda i: widths[i] / flexible[i])
            widths[widest] = max(widths[widest] - 1, text_width(header[widest]))
    lines = []
    for row in (header, *rows):
        if isinstance(row, str):
            lines.append(row if width is None else shorten(row, width))
            continue
        cutters = (cut or {}) if row is not header else {}
        parts = [shorten(cutters.get(i, shorten)(cell, widths[i]), widths[i]) for i, cell in enumerate(row)]
        blanks = [" " * (widths[i] - text_width(part)) for i, part in enumerate(parts)]
        aligned = [b + p if i in right else p + b for i, (p, b) in enumerate(zip(parts, blanks, strict=True))]
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def size(count: int) -> str:
    """A number of bytes: ``640 B``, ``1.23 MB`` (powers of 1000)."""
    if count < 1000:
        return f"{count} B"
    value, units = float(count), iter(("kB", "MB", "GB", "TB"))
    unit = ""
    while value >= 999.5:
        value, unit = value / 1000, next(units)
    return f"{value:.3g} {unit}"


def milliseconds(seconds: float) -> str:
    """A time, with four digits that mean something."""
    value = seconds * 1000
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}" if value >= 1 else f"{value:.3f}"


def percent(part: float, whole: float) -> str:
    """The share of `part` in `whole`; blank if there is no whole."""
    return f"{100 * part / whole:.1f}%" if whole else ""


def shape_text(shape: Sequence[int]) -> str:
    """``(2,5,8)``: a shape without blanks."""
    return f"({','.join(map(str, shape))})"
