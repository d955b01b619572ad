"""Which line of the user's program ran an operation."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from traceback import FrameSummary, walk_stack

PACKAGE = str(Path(__file__).parents[1]) + os.sep
FUNCTIONS = PACKAGE + "functional" + os.sep  # where compositions are
SEAM = FUNCTIONS + "compositions.py"  # stands around every operation within ``fused(False)``, and runs none itself


def current_lines() -> list[FrameSummary]:
    """The innermost line outside of minigrad that led here, and those in minigrad.functional that it led to.

    Their text is read when it is asked for: `traceback.format_list` shows it.
    """
    found: list[FrameSummary] = []
    for frame, number in walk_stack(sys._getframe()):
        file = frame.f_code.co_filename
        outside = not file.startswith(PACKAGE)
        if outside or (file.startswith(FUNCTIONS) and file != SEAM):
            found.insert(0, FrameSummary(file, number, frame.f_code.co_name, lookup_line=False))
        if outside:
            break
    return found
