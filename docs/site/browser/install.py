"""Copies Pyodide into a built site, and the wheels of our packages beside it.

``install(folder, site)`` writes ``_static/pyodide``, with:

- the runtime and the packages of the release, from `folder`;
- a wheel each of minigrad, transformer, and what the exercises import, from this repository, and of the Japanese font
  where it is installed;
- pyodide-lock.json, Pyodide's list of its packages, to which these wheels are added: Pyodide loads them, and checks
  their digests, as it does its own;
- sizes.json, the size of each package and of the runtime (``core``), for the page's words while it loads;
- NOTICE.txt, the licences.

And ``_static/browser``, the scripts and styles of the pages, of each language. A page with runnable cells has
``cells.css`` of it, and ``<script defer src="…/cells.js" data-pyodide="../pyodide/">``: where Pyodide is, counted from
the script.
"""

import json
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import minigrad

from docs.site import lessons
from docs.site.browser import wheels
from docs.site.browser.release import CORE, LOCK, checked, digest, files, pinned

ROOT = Path(__file__).parents[3]
PAGE = Path(__file__).with_name("page")
BROWSER, PYODIDE = "_static/browser", "_static/pyodide"
LANGUAGES = ("", "ja")  # the folders of the site that have a _static of their own
JAPANESE_FONT = "matplotlib-fontja"
NOTICE = """Pyodide {version}: CPython and packages compiled for the browser by the Pyodide project, unchanged.
Pyodide is under the Mozilla Public License 2.0; its source is at https://github.com/pyodide/pyodide/tree/{version}.
CPython is under the PSF License. The licence of a package is in its .whl, a zip file, in the folder *.dist-info.
minigrad and transformer are under the MIT license.
"""


def own_wheels() -> dict[str, tuple[dict[str, Any], bytes]]:
    """The entry of the lock file, and the wheel, of each package of ours, by its name."""
    made = {}

    def add(name: str, files: dict[str, bytes], imports: list[str], *depends: str,
            version: str = minigrad.__version__) -> None:
        content = wheels.wheel(name, version, files)
        made[name] = {"name": name, "version": version, "file_name": wheels.file_name(name, version),
                      "install_dir": "site", "sha256": digest(content), "package_type": "package", "imports": imports,
                      "depends": list(depends), "unvendored_tests": False}, content

    add("minigrad", wheels.of_folder(ROOT / "minigrad"), ["minigrad"], "numpy")
    add("transformer", wheels.of_folder(ROOT / "transformer"), ["transformer"], "minigrad", "numpy", "threadpoolctl")
    helpers = lessons.helpers()
    add("exercises", {path.name: path.read_bytes() for path in helpers}, [path.stem for path in helpers], "minigrad")
    try:
        font = distribution(JAPANESE_FONT)
        add(JAPANESE_FONT, wheels.of_distribution(font), ["matplotlib_fontja"], "matplotlib", version=font.version)
    except PackageNotFoundError:
        pass  # such characters are boxes then, as they were in the pictures of this build
    return made


def install(folder: Path, site: Path) -> None:
    """See the module. FileNotFoundError and WrongFileError name a file of `folder` that is missing or another one."""
    release, target = pinned(), site / PYODIDE
    lock = release["lock"]
    content = {}
    for name, expected in files(release).items():
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} has no {name}; what is missing is downloaded by  "
                                    f"python -m docs.site.browser.fetch {folder}")
        content[name] = checked((folder / name).read_bytes(), name, expected)
    for name, (entry, made) in own_wheels().items():
        lock["packages"][name] = entry
        content[entry["file_name"]] = made
    sizes = {name: len(content[entry["file_name"]]) for name, entry in lock["packages"].items()}
    sizes["core"] = sum(len(content[name]) for name in CORE)
    for top in (site / language for language in LANGUAGES):
        if top == site or top.is_dir():
            shutil.copytree(PAGE, top / BROWSER, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name, data in content.items():
        (target / name).write_bytes(data)
    (target / LOCK).write_text(json.dumps(lock), encoding="utf-8")
    (target / "sizes.json").write_text(json.dumps(sizes), encoding="utf-8")
    (target / "NOTICE.txt").write_text(NOTICE.format(version=lock["info"]["version"]), encoding="utf-8")
