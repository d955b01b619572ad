"""For what is asked of GPUs alone: each of the stand-in's two, and a GPU's first two where there are any."""

import pytest

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
