"""Run the lessons and keep their pictures in this folder, in few colours and so in few bytes.

    python examples/lessons/images/make_images.py          (all lessons)
    python examples/lessons/images/make_images.py 03 05    (these)
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent


def keep(picture: Path) -> None:
    """Copy a picture here; a PNG with 256 colours."""
    if picture.suffix == ".png":
        few = Image.open(picture).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3)
        few.save(HERE / picture.name, optimize=True)
    else:
        shutil.copy(picture, HERE)
    print(f"{picture.name}: {(HERE / picture.name).stat().st_size / 1000:.0f} kB")


def main(numbers: list[str]) -> None:
    """Run the lessons with these numbers, or all, each in an empty folder."""
    for lesson in sorted(HERE.parent.glob("[0-9][0-9]_*.py")):
        if numbers and lesson.name[:2] not in numbers:
            continue
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, lesson], cwd=folder, stdout=subprocess.DEVNULL, check=True)
            for picture in Path(folder).glob(f"runs/lessons/{lesson.stem}.*"):
                if picture.suffix in (".png", ".gif"):
                    keep(picture)


if __name__ == "__main__":
    main(sys.argv[1:])
