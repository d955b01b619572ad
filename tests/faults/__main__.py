"""The command: ``python -m tests.faults --help``."""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.faults.campaign import KINDS, meet
from tests.faults.trainings import prepare
from transformer.training.threads import limit_threads

EVERY = 30.0  # seconds between the lines of progress


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, metavar="KIND",
                        help=f"of {', '.join(KINDS)} (default: all)")
    parser.add_argument("--count", type=int, default=100, help="faults of each kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default: %(default)s)")
    parser.add_argument("--only", type=int, metavar="INDEX", help="the fault of this number, to repeat it")
    parser.add_argument("--jobs", type=int, default=2, help="faults at a time (default: %(default)s)")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="where to write all numbers and failures")
    options = parser.parse_args()

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it leaves neither processes nor disks behind, as Ctrl-C
    indices = range(options.count) if options.only is None else [options.only]
    found: list[dict[str, Any]] = []
    with limit_threads(1), tempfile.TemporaryDirectory(prefix="faults-") as folder:
        base = prepare(Path(folder))
        try:
            for kind in options.kinds:
                found.append({"kind": kind, "faults": 0, "seconds": 0.0, "failures": []})
                _meet_all(found[-1], indices, options.seed, options.jobs, base, show=options.only is not None)
        except KeyboardInterrupt:
            print("Interrupted; this is what was found so far.")
    if options.report:
        report = {"seed": options.seed, "kinds": found}
        options.report.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\n{'':10}{'faults':>8}{'failures':>10}{'seconds':>9}")
    for row in found:
        print(f"{row['kind']:10}{row['faults']:8}{len(row['failures']):10}{row['seconds']:9.0f}")
    parser.exit(int(any(row["failures"] for row in found)))


def _meet_all(row: dict[str, Any], indices: Any, seed: int, jobs: int, base: Any, show: bool) -> None:
    """Count the faults of a kind in its row, and print each failure."""
    begun = told = time.monotonic()
    for entry in meet(row["kind"], indices, seed, jobs, base):
        row["faults"] += 1
        row["seconds"] = round(time.monotonic() - begun, 1)
        if entry["problem"] is not None:
            row["failures"].append(entry)
            print(f"FAILED {entry['fault']}: {entry['problem']}  "
                  f"[--kinds {row['kind']} --seed {seed} --only {entry['index']}]", flush=True)
        elif show:
            print(f"passed {entry['fault']}")
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            print(f"{row['kind']} {row['faults']}/{len(indices)}, {len(row['failures'])} failures", flush=True)


if __name__ == "__main__":
    main()
