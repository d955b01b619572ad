"""Draws distributed_scale.svg for docs/distributed_performance.md: python docs/images/distributed_scale.py

On the left steps measured on one machine, and what the model of benchmarks/scaling.py says of them; on the right its
efficiency for more hosts. The numbers are those that scaling.py wrote to benchmarks/results/distributed_modelled.json.
What was measured is a full dot; all that is open or dashed is modelled.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

NUMBERS = Path(__file__).parents[2] / "benchmarks/results/distributed_modelled.json"
STYLE = """<style>
text{font-family:ui-sans-serif,system-ui,'DejaVu Sans',sans-serif;font-size:12px;fill:#1b1f24;text-anchor:middle}
.head{font-size:14px;font-weight:600}.start{text-anchor:start}.end{text-anchor:end}
.page{fill:#ffffff}.axis{stroke:#6e7781;fill:none}.grid{stroke:#6e7781;stroke-opacity:.25}
.dot{fill:#0072b2}.ring{fill:none;stroke:#d55e00;stroke-width:2}.out{stroke-dasharray:3 2}
.curve{fill:none;stroke-width:2;stroke-dasharray:6 4}.of0{stroke:#d55e00}.of1{stroke:#009e73}.of2{stroke:#7b5ea7}
.of3{stroke:#e69f00}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.axis,.grid{stroke:#9aa4af}.dot{fill:#56b4e9}}
</style>"""
WIDTH, HEIGHT, TOP, BOTTOM = 860, 380, 64, 310
LEFT, RIGHT = (80, 410), (480, 690)  # where each panel begins and ends
SHOWN = ("mid", "base")


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'


def line(kind: str, points: Iterable[tuple[float, float]]) -> str:
    """A line through points."""
    return f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def circle(kind: str, x: float, y: float, radius: float) -> str:
    """A dot or a ring."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>'


def frame(panel: tuple[int, int], title: str, marks: Sequence[tuple[float, str]]) -> list[str]:
    """The title and the axes of a panel; `marks` are heights, each with its label."""
    first, last = panel
    parts = [text(first, 28, title, "head start"), line("axis", [(first, TOP), (first, BOTTOM), (last, BOTTOM)])]
    for height, label in marks:
        parts += [line("grid", [(first, height), (last, height)]), text(first - 6, height + 4, label, "end")]
    return parts


def steps(test: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The panel on the left: milliseconds of a step, on a logarithmic axis."""
    found = [row[key] for row in test.values() for key in ("measured ms", "modelled ms")]
    low, high = math.floor(math.log10(min(found))), math.ceil(math.log10(max(found)))

    def height(ms: float) -> float:
        return BOTTOM - (math.log10(ms) - low) / (high - low) * (BOTTOM - TOP)

    marks = [(height(10.0**power), f"{10**power:,} ms") for power in range(max(0, low), high + 1)]
    parts = frame(LEFT, "A step on one machine, by ranks", marks)
    apart = (LEFT[1] - LEFT[0]) / len(test)
    for number, row in enumerate(test.values()):
        x = LEFT[0] + (number + 0.5) * apart
        parts += [circle("dot", x, height(row["measured ms"]), 4),
                  circle("ring out" if row["held out"] else "ring", x, height(row["modelled ms"]), 7),
                  text(x, BOTTOM + 18, str(row["ranks"])), text(x, BOTTOM + 34, row["size"])]
    parts += [circle("dot", LEFT[0] + 10, 362, 4), text(LEFT[0] + 20, 366, "measured", "start"),
              circle("ring", LEFT[0] + 100, 362, 7), text(LEFT[0] + 113, 366, "modelled, fitted", "start"),
              circle("ring out", LEFT[0] + 232, 362, 7), text(LEFT[0] + 245, 366, "modelled, held out", "start")]
    return parts


def hosts(predictions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The panel on the right: modelled efficiency by the number of hosts, on a logarithmic axis."""
    def height(efficiency: float) -> float:
        return BOTTOM - efficiency * (BOTTOM - TOP)

    counts = sorted({row["hosts"] for row in predictions})
    parts = frame(RIGHT, "Efficiency on more hosts, modelled", [(height(i / 4), f"{25 * i} %") for i in range(5)])

    def place(count: int) -> float:
        share = math.log2(count / counts[0]) / math.log2(counts[-1] / counts[0])
        return RIGHT[0] + 10 + share * (RIGHT[1] - RIGHT[0] - 20)

    parts += [text(place(count), BOTTOM + 18, str(count)) for count in counts]
    parts.append(text((RIGHT[0] + RIGHT[1]) / 2, BOTTOM + 36, "hosts, each with the batch of one"))
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in predictions:
        if row["size"] in SHOWN:
            curves.setdefault(f"{row['size']}, {row['network'].partition(',')[0]}", []).append(
                (place(row["hosts"]), height(row["efficiency"])))
    labels = sorted(curves, key=lambda title: curves[title][-1][1])
    lowest = 0.0
    for title in labels:  # at the ends of the curves, but never two in one place
        lowest = max(lowest + 15, curves[title][-1][1])
        kind = f"curve of{list(curves).index(title)}"
        parts += [line(kind, curves[title]), line(kind, [(RIGHT[1] + 6, lowest), (RIGHT[1] + 24, lowest)]),
                  text(RIGHT[1] + 30, lowest + 4, title, "start")]
    return parts


def main() -> None:
    """Read the numbers, and write the figure beside this script."""
    numbers = json.loads(NUMBERS.read_text(encoding="utf-8"))
    parts = [f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>', *steps(numbers["test"]),
             *hosts(numbers["predictions"])]
    Path(__file__).with_suffix(".svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}">\n<title>Steps measured and modelled, and the modelled efficiency of more hosts</title>\n'
        f'{STYLE}\n' + "\n".join(parts) + "\n</svg>\n", encoding="utf-8")


if __name__ == "__main__":
    main()
