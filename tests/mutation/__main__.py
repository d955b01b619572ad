"""The command: ``python -m tests.mutation --help``."""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutation.campaign import HERE, Campaign, draw
from tests.mutation.table import TESTS

STATUSES = ("killed", "timeout", "survived", "equivalent")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="mutants to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default: %(default)s)")
    parser.add_argument("--paths", nargs="+", default=["minigrad/**/*.py"], metavar="GLOB",
                        help="files to mutate (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: %(default)s)")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="where to write all outcomes")
    parser.add_argument("--list", action="store_true", help="show the mutants, and run nothing")
    options = parser.parse_args()

    mutants = draw(HERE, options.paths, options.count, options.seed)
    if not mutants:
        parser.error(f"no mutants in {' '.join(options.paths)}")
    if options.list:
        print("\n".join(mutant.diff for mutant in mutants))
        return
    listed = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text(encoding="utf-8"))["equivalent"]
    reasons = {(entry["file"], entry["was"], entry["becomes"]): entry["why"] for entry in listed}
    campaign = Campaign(HERE, TESTS, HERE / ".mutation_cache", options.jobs)
    begun, found = time.monotonic(), []
    try:
        for entry in campaign.run(mutants):
            entry["why"] = reasons.get((entry["file"], entry["was"], entry["becomes"]), "")
            if entry["why"] and entry["status"] == "survived":
                entry["status"] = "equivalent"
            found.append(entry)
            print(f"{len(found)}/{len(mutants)} {entry['status']:10} {entry['file']}:{entry['line']} "
                  f"{entry['mutator']}, {entry['seconds']} s {entry['test']}", flush=True)
    except KeyboardInterrupt:
        print("Interrupted; this is what was found so far.")
    found.sort(key=lambda entry: (entry["file"], entry["line"]))
    folders = counted(found)
    if options.report:
        report = {**folders["all"], "folders": folders, "mutants": found}
        options.report.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if found and campaign.measured.failing:
        print(f"Left out, since they fail without a mutant: {', '.join(campaign.measured.failing)}")
    print(f"{text(folders, found)}\n\n{len(found)} mutants in {time.monotonic() - begun:.0f} s")


def counted(found: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each folder and for all: how many have which status, and the share that is noticed of those that can be."""
    folders: dict[str, Counter[str]] = {}
    for entry in found:
        folders.setdefault(entry["file"].rpartition("/")[0], Counter())[entry["status"]] += 1
    folders = {**dict(sorted(folders.items())), "all": sum(folders.values(), Counter())}

    def score(counts: Counter[str]) -> float | None:
        noticed = counts["killed"] + counts["timeout"]
        return noticed / (noticed + counts["survived"]) if noticed + counts["survived"] else None

    return {folder: {"score": score(counts), "counts": dict(counts)} for folder, counts in folders.items()}


def text(folders: dict[str, dict[str, Any]], found: Sequence[dict[str, Any]]) -> str:
    """The numbers of each folder, and the survivors with their diffs."""
    lines = [f"{'':32}{'score':>8}" + "".join(f"{status:>12}" for status in STATUSES)]
    for name, folder in folders.items():
        share = "" if folder["score"] is None else f"{folder['score']:.1%}"
        lines.append(f"{name:32}{share:>8}" + "".join(f"{folder['counts'].get(status, 0):12}" for status in STATUSES))
    for title, status in (("Explained", "equivalent"), ("Survived", "survived")):
        for entry in found:
            if entry["status"] == status:
                heading = f"{title}: {entry['file']}:{entry['line']}, {entry['mutator']}, {entry['tests']} tests"
                lines += ["", heading, *filter(None, [entry["why"]]), entry["diff"].rstrip()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
