"""``python -m docs.site``: build the whole site into docs/_site."""

import sys

from docs.site.build import build
from docs.site.links import BrokenLink

if __name__ == "__main__":
    try:
        build()
    except BrokenLink as error:
        sys.exit(f"{error}")
