"""For tests of this folder: GPUs alone, and the two forms of a function."""

from collections.abc import Iterator

import pytest

from minigrad import fused
from minigrad.device import cuda_status

COUNT = cuda_status().devices
WANTING = pytest.mark.skipif(COUNT < 2, reason=f"needs a second GPU; this machine has {COUNT}")
GPUS = ["stand-in 0", "stand-in 1"]
if COUNT:
    GPUS += [pytest.param("gpu 0", marks=pytest.mark.gpu), pytest.param("gpu 1", marks=[pytest.mark.gpu, WANTING])]


@pytest.fixture(params=GPUS)
def gpu(request: pytest.FixtureRequest) -> str:
    """The name of a GPU: of one that is the current device, and of one that is not."""
    kind, _, index = request.param.rpartition(" ")
    if kind == "stand-in":
        request.getfixturevalue("stand_in")
    return f"cuda:{index}"


@pytest.fixture(params=[True, False], ids=["fused", "by steps"])
def form(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether functions run as one operation, or by the steps of their compositions."""
    with fused(request.param):
        yield request.param
