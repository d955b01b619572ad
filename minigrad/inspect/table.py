"""Text for people: aligned tables, and numbers with units."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def shorten(text: str, width: int) -> str:
    """`text`, cut to `width` characters with an ellipsis if it is longer."""
    return text if len(text) <= width else text[:width - 1] + "…"


def table(header: Sequence[str], rows: Sequence[Sequence[str] | str], right: Collection[int] = ()) -> str:
    """`rows` under `header`, each column as wide as its widest cell; a row that is a string is a heading.

    Args:
        right: the columns that are aligned to the right.
    """
    cells = [header, *[row for row in rows if not isinstance(row, str)]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        if isinstance(row, str):
            lines.append(row)
            continue
        parts = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append("  ".join(parts).rstrip())
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
