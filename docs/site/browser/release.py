"""One release of Pyodide, and which files of it the lessons need: release.json names them, with their digests.

``python -m docs.site.browser.release FOLDER`` writes release.json anew, from an unpacked distribution of Pyodide. Try
every lesson then: versions of Python, NumPy and matplotlib come with the release.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RELEASE = Path(__file__).with_name("release.json")
CORE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
LOCK = "pyodide-lock.json"
PACKAGES = ("numpy", "scipy", "matplotlib", "threadpoolctl")  # what minigrad, transformer and the lessons import


class WrongFileError(ValueError):
    """A file that is not the one of the release."""


def closure(packages: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    """`names` and all that they depend on, by the packages of a lock file, in the order of the alphabet.

    KeyError for a name that the lock file lacks.
    """
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += packages[name]["depends"]
    return sorted(found)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pinned() -> dict[str, Any]:
    """The release: ``core``, digests by file name, and ``lock``, Pyodide's lock file with our packages alone."""
    release: dict[str, Any] = json.loads(RELEASE.read_text(encoding="utf-8"))
    return release


def files(release: Mapping[str, Any]) -> dict[str, str]:
    """The digest of each file, by its name."""
    packages = {entry["file_name"]: entry["sha256"] for entry in release["lock"]["packages"].values()}
    return {**release["core"], **packages}


def checked(content: bytes, name: str, expected: str) -> bytes:
    """The content, if it has the digest `expected`; else WrongFileError."""
    if digest(content) != expected:
        raise WrongFileError(f"{name} is not the file of Pyodide {pinned()['lock']['info']['version']}: its SHA-256 is "
                             f"{digest(content)}, not {expected}")
    return content


def pin(folder: Path) -> dict[str, Any]:
    """What release.json says of an unpacked distribution."""
    lock = json.loads((folder / LOCK).read_text(encoding="utf-8"))
    packages = lock["packages"]
    return {"core": {name: digest((folder / name).read_bytes()) for name in CORE},
            "lock": {"info": lock["info"], "packages": {name: packages[name] for name in closure(packages, PACKAGES)}}}


if __name__ == "__main__":
    RELEASE.write_text(json.dumps(pin(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
