"""The installed packages: every folder is found, the wheel is whole, an import loads no more than it needs."""

import configparser
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

import minigrad

ROOT = Path(__file__).parents[1]
PACKAGES = ("minigrad", "transformer")
EXTRAS = {"cupy", "babel", "sacrebleu", "tokenizers", "sklearn", "matplotlib", "matplotlib_fontja", "pygraphviz",
          "mpi4py", "pytest", "sphinx", "playwright"}


def modules():
    return [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]


def test_setuptools_finds_every_folder_of_both_packages_their_data_and_one_version():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    assert config["metadata"]["version"] == "attr: minigrad.__version__"
    assert f"\nversion: {minigrad.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    patterns = config["options.packages.find"]["include"].split()
    for folder in {path.parent for path in modules()}:
        dotted = ".".join(folder.relative_to(ROOT).parts)
        assert (folder / "__init__.py").exists(), f"{dotted}: pip install would leave it out"
        assert any(fnmatch(dotted, pattern) for pattern in patterns)
    for package, data in config["options.package_data"].items():
        for pattern in data.split(", "):
            assert list((ROOT / package).glob(pattern)), f"{package} has no {pattern}"


@pytest.mark.parametrize(("package", "kept_out"), [
    ("minigrad", {"scipy", "safetensors", "tqdm", "threadpoolctl", "click", *EXTRAS}),
    ("transformer", {"scipy", "safetensors", "tqdm", "click", *EXTRAS})])
def test_an_import_loads_no_more_than_it_needs(package, kept_out):
    code = f"import {package}, sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert kept_out.isdisjoint(done.stdout.split())
