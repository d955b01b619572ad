"""What a campaign found: the score, the numbers of each folder, and the survivors with their diffs."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutation.campaign import Outcome
from tests.mutation.mutators import Mutant


def read_explanations(path: Path) -> dict[tuple[str, str, str], str]:
    """The survivors that no test can notice: (file, the lines as they are, as the mutant has them) -> why."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    return {(entry["file"], entry["was"], entry["becomes"]): entry["why"] for entry in entries}


def key(mutant: Mutant) -> tuple[str, str, str]:
    return mutant.file, mutant.was, mutant.becomes


def record(outcome: Outcome, explanations: dict[tuple[str, str, str], str]) -> dict[str, Any]:
    """An outcome as JSON has it; a survivor that is explained has the status equivalent."""
    mutant, why = outcome.mutant, explanations.get(key(outcome.mutant), "")
    status = "equivalent" if why and outcome.status == "survived" else outcome.status
    return {"file": mutant.file, "line": mutant.lines[0], "mutator": mutant.mutator, "status": status, "why": why,
            "test": outcome.test, "tests": outcome.tests, "seconds": round(outcome.seconds, 1),
            "was": mutant.was, "becomes": mutant.becomes, "diff": mutant.diff}


def score(counts: Counter[str]) -> float | None:
    """The share of mutants that are noticed, of those that can be; None of none."""
    noticed = counts["killed"] + counts["timeout"]
    return noticed / (noticed + counts["survived"]) if noticed + counts["survived"] else None


def summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of each folder and of all, with the records."""
    folders: dict[str, Counter[str]] = {}
    for entry in records:
        folders.setdefault(entry["file"].rpartition("/")[0], Counter())[entry["status"]] += 1
    total = sum(folders.values(), Counter())
    seconds = round(sum(entry["seconds"] for entry in records), 1)
    return {"score": score(total), "counts": dict(total), "seconds": seconds,
            "folders": {folder: {"score": score(counts), **counts} for folder, counts in sorted(folders.items())},
            "mutants": sorted(records, key=lambda entry: (entry["file"], entry["line"]))}


def text(found: dict[str, Any]) -> str:
    """The summary for a terminal."""
    statuses = ("killed", "timeout", "survived", "equivalent")
    lines = [f"{'':32}{'score':>8}" + "".join(f"{status:>12}" for status in statuses)]
    for name, counts in [*found["folders"].items(), ("all", {"score": found["score"], **found["counts"]})]:
        share = "" if counts["score"] is None else f"{counts['score']:.1%}"
        lines.append(f"{name:32}{share:>8}" + "".join(f"{counts.get(status, 0):12}" for status in statuses))
    for title, status in (("Explained", "equivalent"), ("Survived", "survived")):
        for entry in found["mutants"]:
            if entry["status"] == status:
                lines += ["", f"{title}: {entry['file']}:{entry['line']}, {entry['mutator']}, {entry['tests']} tests"]
                lines += [entry["why"]] if entry["why"] else []
                lines.append(entry["diff"].rstrip())
    return "\n".join(lines)
