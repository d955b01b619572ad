"""The project around the code: layout, packaging, dependencies, and the make targets."""

import configparser
import importlib.metadata
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from minigrad.device import cuda_status

from tests.explorer import browser

ROOT = Path(__file__).parents[1]
PACKAGES = ("minigrad", "transformer")


def setup_cfg() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config


def lines(value: str) -> list[str]:
    return [line for line in value.split("\n") if line and not line.startswith("#")]


def distribution(requirement: str) -> str:
    """The name in a requirement: 'cupy-cuda12x[ctk]>=14' -> 'cupy-cuda12x'."""
    return re.split(r"[\[<>=!~;\s]", requirement, maxsplit=1)[0]


def declared() -> dict[str, str]:
    """Distribution -> 'core' or its extra, as setup.cfg has it; our own extras within extras left out."""
    config = setup_cfg()
    found = {distribution(line): "core" for line in lines(config["options"]["install_requires"])}
    for extra, requirements in config["options.extras_require"].items():
        for line in lines(requirements):
            name = distribution(line)
            if name != "minigrad":
                assert name not in found, f"{name} is declared twice"
                found[name] = extra
    return found


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


# --- Layout ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "CHANGELOG.md", "LICENSE", "setup.cfg", "pyproject.toml", "Makefile", ".gitignore"),
        *(".ci/run", "docs/design.md", "docs/dependencies.md", "minigrad/py.typed", "transformer/py.typed"),
    ],
)
def test_the_project_has(name):
    assert (ROOT / name).exists()


def test_ci_script_is_executable():
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


@pytest.mark.parametrize("package", PACKAGES)
def test_setuptools_finds_every_folder_of_the_package(package):
    patterns = lines(setup_cfg()["options.packages.find"]["include"])
    for folder in {path.parent for path in modules(package)}:
        dotted = ".".join(folder.relative_to(ROOT).parts)
        assert (folder / "__init__.py").exists(), f"{dotted}: pip install would leave it out"
        assert any(fnmatch(dotted, pattern) for pattern in patterns)


def test_only_the_two_packages_are_installed():
    patterns = lines(setup_cfg()["options.packages.find"]["include"])
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.suffix != ".egg-info"}
    assert {name for name in folders if any(fnmatch(name, p) for p in patterns)} == set(PACKAGES)


# --- Version, metadata -------------------------------------------------------------------------------------


def version() -> str:
    """The one place where the version is written; setuptools reads it from there without importing the package."""
    text = (ROOT / "minigrad/__init__.py").read_text(encoding="utf-8")
    (literal,) = re.findall(r'^__version__ = "(\d+\.\d+\.\d+)"$', text, flags=re.MULTILINE)
    return str(literal)


def test_the_version_is_written_once():
    assert setup_cfg()["metadata"]["version"] == "attr: minigrad.__version__"
    sources = [*modules("minigrad"), *modules("transformer"), ROOT / "pyproject.toml", ROOT / "setup.cfg"]
    holders = [path for path in sources if version() in path.read_text(encoding="utf-8")]
    assert holders == [ROOT / "minigrad/__init__.py"]


def test_the_changelog_has_the_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", text, flags=re.MULTILINE)
    assert headings[:2] == ["Unreleased", version()]


def test_installed_metadata():
    """What pip recorded, when this checkout is what is installed (make test installs it)."""
    try:
        installed = importlib.metadata.metadata("minigrad")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the project is not installed; make test does that")
    config = setup_cfg()
    assert installed["Requires-Python"] == config["options"]["python_requires"]
    assert set(installed.get_all("Provides-Extra")) == set(config["options.extras_require"])


@pytest.mark.slow
def test_the_wheel_holds_both_packages_whole(tmp_path):
    source = tmp_path / "source"  # a copy: building leaves files beside setup.cfg
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, tmp_path, source], check=True)

    (wheel,) = tmp_path.glob(f"minigrad-{version()}-*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = {path.relative_to(ROOT).as_posix() for package in PACKAGES for path in modules(package)}
    page = {path.relative_to(ROOT).as_posix() for path in (ROOT / "transformer/explore/page").iterdir()}
    assert names == sources | page | {"minigrad/py.typed", "transformer/py.typed"}


# --- Dependencies ------------------------------------------------------------------------------------------


def test_every_dependency_is_explained():
    text = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| ([^|]+) \| ([^|]+) \|$", text, flags=re.MULTILINE)
    assert {name: where for name, where, _, _ in rows} == declared()


def loaded_by(module: str) -> set[str]:
    """Top-level modules in memory after a fresh interpreter imported ``module``."""
    code = f"import {module}, sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


EXTRAS = {"cupy", "babel", "sacrebleu", "tokenizers", "matplotlib", "matplotlib_fontja", "pygraphviz", "pytest", "pdoc",
          "playwright"}


def test_import_minigrad_loads_numpy_only():
    third_party = {"scipy", "safetensors", "tqdm", "threadpoolctl", "click", *EXTRAS}
    assert loaded_by("minigrad") & third_party == set()


def test_import_transformer_loads_no_extra():
    assert loaded_by("transformer") & EXTRAS == set()


# --- make --------------------------------------------------------------------------------------------------


def test_make_help_names_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (targets,) = re.findall(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)
    described = set(re.findall(r'@echo "make ([\w-]+)', makefile))
    assert described == set(targets.split()) - {"help"}


def test_make_runs_files_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    scripts = re.findall(r"\$\(BIN\)/python ([\w/]+\.py)", makefile)
    assert scripts
    assert [name for name in scripts if not (ROOT / name).is_file()] == []


@pytest.mark.skipif(cuda_status().devices > 0, reason="there is a GPU here")
def test_without_a_gpu_make_test_gpu_says_why():
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "--collect-only", "tests/minigrad/test_device.py"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert outcome.returncode != 0
    assert f"no GPU to test on: {cuda_status().reason}" in outcome.stderr


# --- .ci/run -----------------------------------------------------------------------------------------------


def test_the_ci_script_knows_the_browsers_that_the_tests_know():
    text = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (names,) = re.findall(r"^BROWSERS=\(\n(.+?)^\)$", text, flags=re.MULTILINE | re.DOTALL)
    assert tuple(shlex.split(names)) == browser.CANDIDATES
    assert f"export {browser.REQUIRED}=1\n" in text


def run_ci(folder, *, programs, environment=()):
    """.ci/run where these programs exist and no other; returns its exit status, its lines, and what it called."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci")
    path = folder / "bin"
    path.mkdir()
    for name in ("bash", "dirname", "cat", "chmod"):
        (path / name).symlink_to(str(shutil.which(name)))
    log = folder / "log"
    for name, body in programs.items():
        (path / name).write_text(f'#!/bin/bash\necho "{name} $*" >> "{log}"\n{body}\n', encoding="utf-8")
        (path / name).chmod(0o755)
    done = subprocess.run([path / "bash", folder / ".ci/run"], capture_output=True, text=True, check=False,
                          env={"PATH": str(path), **dict(environment)})
    return done.returncode, done.stdout.splitlines(), log.read_text(encoding="utf-8").splitlines()


MAKE = f'echo "make $1, {browser.REQUIRED}=${browser.REQUIRED}"'
ROOT_USER, SOMEONE = "echo 0", "echo 1000"
APT_GET = 'if [ "$1" = install ]; then echo "#!/bin/bash" > "${0%/*}/chromium"; chmod +x "${0%/*}/chromium"; fi'
MADE = [f"make {target}, {browser.REQUIRED}=1" for target in ("lint", "test")]
without_a_mac = pytest.mark.skipif(any(Path(name).exists() for name in browser.CANDIDATES if name.startswith("/")),
                                   reason="this machine's browser is found without PATH")


@pytest.mark.parametrize("name", ["chromium", "google-chrome-stable"])
def test_ci_uses_the_browser_that_is_there(tmp_path, name):
    status, printed, called = run_ci(tmp_path, programs={"make": MAKE, name: "", "apt-get": APT_GET, "id": ROOT_USER})
    assert (status, printed, called) == (0, MADE, ["make lint", "make test"])


def test_ci_uses_the_browser_that_is_named(tmp_path):
    programs = {"make": MAKE, "apt-get": APT_GET, "id": ROOT_USER}
    status, printed, called = run_ci(tmp_path, programs=programs, environment={browser.NAMED: "/opt/chrome"}.items())
    assert (status, printed, called) == (0, MADE, ["make lint", "make test"])


@without_a_mac
@pytest.mark.parametrize(("user", "sudo"), [(ROOT_USER, False), (SOMEONE, True)])
def test_ci_installs_a_browser_first(tmp_path, user, sudo):
    programs = {"make": MAKE, "apt-get": APT_GET, "id": user}
    if sudo:
        programs["sudo"] = 'shift; "$@"'
    status, printed, called = run_ci(tmp_path, programs=programs)
    assert status == 0
    assert printed[-2:] == MADE
    apt = ["apt-get update -qq", "apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core"]
    assert [line for line in called if line.startswith("sudo")] == [f"sudo -n {line}" for line in apt if sudo]
    assert [line for line in called if not line.startswith(("id", "sudo"))] == [*apt, "make lint", "make test"]


@without_a_mac
@pytest.mark.parametrize("programs", [
    {"id": ROOT_USER},  # no apt-get
    {"id": SOMEONE, "apt-get": APT_GET},  # no sudo
    {"id": SOMEONE, "apt-get": APT_GET, "sudo": "exit 1"},  # it would ask for a password
    {"id": ROOT_USER, "apt-get": "exit 100"},  # no network
])
def test_ci_without_a_browser_says_so_and_runs_the_tests_which_then_fail(tmp_path, programs):
    make = f'{MAKE}; if [ "$1" = test ]; then exit 2; fi'
    status, printed, _ = run_ci(tmp_path, programs={"make": make, **programs})
    assert status == 2
    assert printed[-2:] == MADE
    assert printed[-3] == (".ci/run: no Chromium or Chrome here, and none could be installed: the browser tests will "
                           f"fail; install one, or name it: {browser.NAMED}=/path/to/chrome")


def test_ci_fails_when_only_the_linters_do(tmp_path):
    make = f'{MAKE}; if [ "$1" = lint ]; then exit 2; fi'
    status, printed, _ = run_ci(tmp_path, programs={"make": make, "chromium": ""})
    assert (status, printed) == (2, MADE)
