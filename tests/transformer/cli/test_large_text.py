"""``train`` on text of a million lines: its memory does not grow with the text."""

import subprocess
import sys

import pytest

from tests.transformer.commands import ROOT

CHILD = """
import re, sys
from pathlib import Path
from transformer.cli import main

try:
    main(sys.argv[1:])  # exits
finally:
    print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process's memory is read from /proc")
def test_a_pair_takes_less_than_64_bytes(tmp_path):
    valid = [tmp_path / "valid.a", tmp_path / "valid.b"]
    for path in valid:
        path.write_text("one two three\n" * 4)
    peaks = []
    for count in (100_000, 1_500_000):
        paths = [tmp_path / f"{count}.a", tmp_path / f"{count}.b"]
        for path in paths:
            with path.open("w") as file:
                file.writelines(f"{number % 90} is what {number % 7} was\n" for number in range(count))
        command = ["train", "--train", *paths, "--valid", *valid, "--out", tmp_path / f"run-{count}",
                   "--tokens", "words", "--config", "tiny", "--steps", "2", "--quiet"]
        done = subprocess.run([sys.executable, "-c", CHILD, *map(str, command)], cwd=ROOT, check=True, text=True,
                              stdout=subprocess.PIPE)
        peaks.append(1024 * int(done.stdout.split()[-1]))
    assert (peaks[1] - peaks[0]) / 1_400_000 < 64
