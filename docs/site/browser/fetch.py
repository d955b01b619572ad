"""``python -m docs.site.browser.fetch FOLDER`` downloads the files of Pyodide that a site with runnable cells needs.

They come from where the Pyodide project publishes its releases; each must have the digest that release.json names. A
file that is there and right is not downloaded again. Nothing else here uses the network.
"""

import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

from docs.site.browser.release import checked, digest, files, pinned

ADDRESS = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{name}"


def download(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=120) as answer:
        content: bytes = answer.read()
    return content


def fetch(folder: Path, get: Callable[[str], bytes] = download) -> list[str]:
    """Make `folder` have every file of the release; the names of those that were downloaded.

    OSError if one cannot be had, WrongFileError if it is another; neither leaves it in the folder.
    """
    release, fetched = pinned(), []
    version = release["lock"]["info"]["version"]
    folder.mkdir(parents=True, exist_ok=True)
    for name, expected in files(release).items():
        path = folder / name
        if path.exists() and digest(path.read_bytes()) == expected:
            continue
        path.write_bytes(checked(get(ADDRESS.format(version=version, name=name)), name, expected))
        fetched.append(name)
    return fetched


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m docs.site.browser.fetch FOLDER")
    target = Path(sys.argv[1])
    print(f"{len(fetch(target))} of {len(files(pinned()))} files downloaded; Pyodide is in {target}")
