"""The command: ``python -m tests.mutation --help``."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from tests.mutation.campaign import HERE, Campaign, draw
from tests.mutation.report import read_explanations, record, summary, text
from tests.mutation.table import TESTS


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
    explanations = read_explanations(Path(__file__).with_name("equivalent.toml"))
    campaign = Campaign(HERE, TESTS, HERE / ".mutation_cache", options.jobs)
    begun, records = time.monotonic(), []
    try:
        for outcome in campaign.run(mutants):
            entry = record(outcome, explanations)
            records.append(entry)
            print(f"{len(records)}/{len(mutants)} {entry['status']:10} {entry['file']}:{entry['line']} "
                  f"{entry['mutator']}, {entry['seconds']} s {entry['test']}", flush=True)
    except KeyboardInterrupt:
        print("Interrupted; this is what was found so far.")
    found = summary(records)
    if options.report:
        options.report.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if records and campaign.measured.failing:
        print(f"Left out, since they fail without a mutant: {', '.join(campaign.measured.failing)}")
    print(f"{text(found)}\n\n{len(records)} mutants in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
