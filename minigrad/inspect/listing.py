"""The tape as text: a table with a line for each recorded operation, in the order in which a backward fires them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad.inspect.entry import Entry, Leaf
from minigrad.inspect.lines import short_names, shorten_lines
from minigrad.inspect.modules import RECOMPUTED
from minigrad.inspect.table import shape_text, size, table

if TYPE_CHECKING:
    from minigrad.inspect.recorder import Tape

_READING = """\
{count}, in the order in which {order}: what was recorded last comes first.
  made at    the line of the program that ran the operation, and the one in minigrad.functional that it led to
  shapes     its tensors and arrays → its output, and the dtype of that
  saved      what is kept for the backward, and whose gradient needs it: x 640 B→∂weight; w 512 B→∂x
  |gradient| the norm of the gradient of its output, when its rules ran; ×2: the last of two times"""
_UNWATCHED = """\
Lines, modules and gradients are seen inside a block alone: with inspect.record_tape() as t: …, backward too."""


def dtype_text(dtype: Any) -> str:
    """``f32`` for float32."""
    kind = np.dtype(dtype)
    return f"{kind.kind}{8 * kind.itemsize}"


def kept_text(entry: Entry) -> str:
    """What an operation saved and for which rules: ``y 704 B, x_shape→∂x; x 512 B, y_shape→∂y``."""
    if entry.kept is None:
        return "freed"
    known = {"out", *(name for name, _ in entry.inputs)}  # their shapes are in the row already
    everything = {name for name, _ in entry.parents}
    by_rules: dict[tuple[str, ...], list[str]] = {}
    for kept in entry.kept:
        shape = f" {shape_text(kept.shape)}" if kept.shape is not None and kept.name not in known else ""
        text = f"{kept.name}{shape}{' ' + size(kept.nbytes) if kept.nbytes else ''}"
        by_rules.setdefault(tuple(dict.fromkeys(kept.rules)), []).append(text)
    texts = []
    for rules, kept_for_them in by_rules.items():
        whose = "∂all" if len(everything) > 1 and everything == set(rules) else "".join(f"∂{rule}" for rule in rules)
        texts.append(f"{', '.join(kept_for_them)}→{whose or 'create_graph'}")
    return "; ".join(texts)


def norm_text(norm: float | None) -> str:
    """A norm with three digits, blank if there is none."""
    return "" if norm is None else f"{norm:.2e}"


def _status(one: Entry | Leaf, any_fired: bool) -> str:
    norm = norm_text(one.gradient_norm)
    if one.times > 1:
        return f"{norm} ×{one.times}"
    return norm or ("not reached" if any_fired else "")


def _row(place: int, entry: Entry, any_fired: bool, files: Mapping[str, str]) -> tuple[str, ...]:
    shapes = " ".join(shape_text(shape) for _, shape in entry.inputs)
    shapes += f" → {shape_text(entry.shape)} {dtype_text(entry.dtype)}"
    return (str(place), entry.name, "" if entry.line is None else entry.line.text(files), shapes, kept_text(entry),
            _status(entry, any_fired))


def _heading(entry: Entry, tape: Tape) -> str:
    """The module that an operation belongs to; whether it was computed again, or by whose rule it was recorded."""
    call, by = entry.call, ""
    if entry.inside is not None:
        maker = tape.entries[entry.inside]
        if maker.name != "checkpoint":
            by = f"recorded by the backward of {maker.name}"
        call = call or maker.call
    labels = [one.label for one in call.chain] if call is not None else []
    module = next((label for label in reversed(labels) if label != RECOMPUTED), "")
    return ", ".join(part for part in (module, RECOMPUTED if RECOMPUTED in labels else "", by) if part)


def listing(tape: Tape, count: int | None, width: int) -> str:
    """The whole text: how to read it, the operations, the leaves."""
    entries = tape.in_firing_order()
    any_fired = any(entry.fired is not None for entry in entries)
    order = "the backward fired them" if any_fired else "a backward will fire them"
    operations = "1 operation" if len(entries) == 1 else f"{len(entries)} operations"
    lines = [_READING.format(count=operations, order=order), *([] if tape.watched else [_UNWATCHED]), ""]

    left_out = 0 if count is None else max(0, len(entries) - count)
    first = (len(entries) - left_out + 1) // 2
    files = short_names(line for entry in entries if entry.line is not None for line in entry.line.shown)
    rows: list[tuple[str, ...] | str] = []
    heading = ""
    for place, entry in enumerate(entries):
        if first <= place < first + left_out:
            if place == first:
                rows.append(f"… {left_out} more: text(count=None) shows all …")
                heading = ""
            continue
        if _heading(entry, tape) != heading:
            heading = _heading(entry, tape)
            rows.append(f"── {heading or 'outside of modules'}")
        rows.append(_row(place + 1, entry, any_fired, files))
    header = ["#", "operation", "made at", "shapes", "saved", "|gradient|"]
    used = {i for row in rows if not isinstance(row, str) for i, cell in enumerate(row) if cell}
    keep = [i for i in range(len(header)) if i in used or i not in (2, 5)]
    rows = [row if isinstance(row, str) else tuple(row[i] for i in keep) for row in rows]
    flexible = {keep.index(i): weight for i, weight in ((2, 0.8), (3, 1.3), (4, 1.0)) if i in keep}
    right = [keep.index(i) for i in (0, 5) if i in keep]
    cut = {keep.index(2): shorten_lines} if 2 in keep else {}
    lines.append(table([header[i] for i in keep], rows, right, width, flexible, cut))
    if tape.leaves:
        lines += ["", _leaves(tape, count, width, any_fired)]
    return "\n".join(lines)


def _leaves(tape: Tape, count: int | None, width: int, any_fired: bool) -> str:
    leaves = list(tape.leaves.values())
    shown = leaves if count is None else leaves[:count]
    rows: list[tuple[str, ...] | str] = [
        (leaf.name or "(no name)", f"{shape_text(leaf.shape)} {dtype_text(leaf.dtype)}", _status(leaf, any_fired))
        for leaf in shown]
    header = ["leaf", "shape", "|gradient|"]
    if not any_fired:
        rows, header = [row[:2] for row in rows], header[:2]
    if len(shown) < len(leaves):
        rows.append(f"… {len(leaves) - len(shown)} more")
    return table(header, rows, right=(2,), width=width, flexible={0: 1.0})
