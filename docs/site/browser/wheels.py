"""Wheels for Pyodide of what is pure Python: our packages, and the Japanese font of the pictures.

A wheel is a zip of the files as they lie in site-packages, with a folder that says what it is.
"""

import io
import re
import zipfile
from collections.abc import Mapping
from importlib.metadata import Distribution
from pathlib import Path

WHEEL = "Wheel-Version: 1.0\nGenerator: docs.site.browser\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
WHEN = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def file_name(name: str, version: str) -> str:
    return f"{re.sub(r'[-_.]+', '_', name).lower()}-{version}-py3-none-any.whl"


def wheel(name: str, version: str, files: Mapping[str, bytes]) -> bytes:
    """The wheel of `files`, by their places in site-packages."""
    about = file_name(name, version).removesuffix("-py3-none-any.whl") + ".dist-info"
    notes = {"WHEEL": WHEEL, "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "RECORD": ""}
    content = dict(files) | {f"{about}/{note}": text.encode() for note, text in notes.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for place in sorted(content):
            archive.writestr(zipfile.ZipInfo(place, WHEN), content[place], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def of_folder(package: Path) -> dict[str, bytes]:
    """The files of a package, by their places in site-packages."""
    return {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in package.rglob("*")
            if path.is_file() and path.suffix != ".pyc"}


def of_distribution(distribution: Distribution) -> dict[str, bytes]:
    """The files of an installed distribution that is pure Python, of what lies in site-packages."""
    return {place.as_posix(): place.read_binary() for place in distribution.files or () if ".." not in place.parts
            and place.suffix != ".pyc" and not place.parts[0].endswith(".dist-info")}
