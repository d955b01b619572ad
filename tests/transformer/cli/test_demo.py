"""``demo``: what it says, and the whole of it from a wheel, in a folder where nothing of the repository is."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.transformer.commands import call, refused

ROOT = Path(__file__).parents[3]


def test_what_it_lacks_is_said_before_it_trains(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "minigrad-transformer[data,plot]" in refused("demo", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_after_a_signal_it_says_how_to_go_on(begun, tmp_path, monkeypatch):
    result = call("demo", "--out", tmp_path / "my run")
    assert (result.exit_code, result.stderr) == (130, "stopped; there is no checkpoint yet\n")
    monkeypatch.setattr("transformer.cli.train.is_run", lambda folder: True)
    stopped = call("demo", "--out", tmp_path / "my run", "--steps", "7").stderr
    assert stopped.endswith(f"python -m transformer demo --out '{tmp_path}/my run' --steps 7 --device cpu\n")


@pytest.mark.slow
def test_from_a_wheel_made_from_the_sdist(tmp_path):
    """`build` makes the sdist, and from it, alone, the wheel; its demo runs elsewhere."""
    run = {"check": True, "capture_output": True, "text": True, "encoding": "utf-8"}
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT], **run)
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        parts = {Path(name).parts[1] for name in archive.getnames() if "/" in name}
    assert not parts & {"tests", "runs", "docs", "benchmarks"}
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, wheel], **run)
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"}
    code = "import minigrad, transformer; print(minigrad.__file__, transformer.__file__)"
    where = subprocess.run([sys.executable, "-c", code], cwd=elsewhere, env=environment, **run)
    assert where.stdout.count(str(site)) == 2
    done = subprocess.run([sys.executable, "-m", "transformer", "demo", "--steps", "20"], cwd=elsewhere,
                          env=environment, **run)
    assert len(re.findall(r"^  .+ → ", done.stdout, re.MULTILINE)) == 10
    out = elsewhere / "runs/demo"
    assert {(out / name).read_bytes()[:4] for name in ("attention.png", "history.png")} == {b"\x89PNG"}
    assert "le 1er septembre 2021" in (out / "explain.html").read_text(encoding="utf-8")
