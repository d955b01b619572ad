"""Where the time of a training step goes: the operations of a workload of training.py, as `minigrad.profile` sees them.

    python benchmarks/where.py toy base            in one thread; beside each operation its share of the step
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

import page
import paired
from peers import minigrad_training
from workloads import SIZES, Workload

import minigrad

WARM_UP, STEPS = 4, 6


def measured(workload: Workload, device: str = "cpu") -> dict[str, float]:
    """Milliseconds of a step by operation, forward and backward, and of all that is no operation."""
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "start.safetensors"
        workload.write_weights(weights)
        with minigrad_training.trainer(workload, str(weights), threads=1, device=device) as training:
            batches = [training.prepare(*batch) for batch in workload.batches(WARM_UP + STEPS)]
            for batch in batches[:WARM_UP]:
                training.step(batch)
            with minigrad.profile() as profile:
                for batch in batches[WARM_UP:]:
                    training.step(batch)
    whole = 1e3 * (profile.elapsed - profile.watching) / STEPS
    operations = {name: 1e3 * row.total / STEPS for name, row in profile.operations.items()}
    optimizer = 1e3 * profile.named["AdamW.step"].total / STEPS
    rest = whole - sum(operations.values()) - optimizer
    return dict(sorted(operations.items(), key=lambda item: -item[1])) | {"AdamW": optimizer, "all else": rest,
                                                                         "step": whole}


def table(title: str, rows: Mapping[str, float]) -> str:
    """What `measured` found as a table in Markdown, without what takes less than half a percent."""
    lines = [f"| {title} | ms | share of the step |", "|---|---:|---:|"]
    lines += [f"| {name} | {page.number(ms)} | {ms / rows['step']:.1%} |" for name, ms in rows.items()
              if ms >= 0.005 * rows["step"]]
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", default=["toy", "base"], help="toy, small, mid or base")
    parser.add_argument("--dry", action="store_true", help="print the tables, and write nothing")
    options = parser.parse_args()
    for size in options.sizes:
        rows = measured(SIZES[size])
        shown = table(size, rows)
        print(shown, flush=True)
        if not options.dry:
            below = page.circumstances(paired.report("", "ms", STEPS, [], {})).replace(" pairs", " steps")
            page.put(f"where_{size}", shown, below)


if __name__ == "__main__":
    main()
