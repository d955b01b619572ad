"""The stand-in under the name of CuPy, for programs with this folder in PYTHONPATH and all that they start.

A test lets the stand-in serve the ``cuda`` devices of its own process. A command, or a script that starts others, can
be tried on it, too:

    PYTHONPATH=tests/strict_cupy/installed:. python -m transformer train --task copy --out runs/tried --device cuda
"""

import sys

from tests import strict_cupy

strict_cupy.cupy.ndarray.__module__ = f"{__name__}.strict"  # by its first word it is CuPy, and by all not a card
sys.modules["cupyx.scipy.special"] = strict_cupy.special
sys.modules[__name__] = strict_cupy.cupy
