"""Text for people: aligned tables, and numbers with units."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str] | str], right: Collection[int] = ()) -> str:
    """`rows` under `header`, each column as wide as its widest cell; a row that is a string is a heading.

    Args:
        right: the columns that are aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(header, *[row for row in rows if not isinstance(row, str)],
                                                      strict=True)]

    def line(row: Sequence[str] | str) -> str:
        return row if isinstance(row, str) else "  ".join(
            f"{cell:{'>' if i in right else '<'}{widths[i]}}" for i, cell in enumerate(row)).rstrip()

    return "\n".join(map(line, (header, *rows)))


def size(count: int) -> str:
    """A number of bytes: ``640 B``, ``1.23 MB`` (powers of 1000)."""
    value, units = float(count), iter(("B", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while value >= 999.5:
        value, unit = value / 1000, next(units)
    return f"{value:.3g} {unit}"
