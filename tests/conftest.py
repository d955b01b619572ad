"""Fixtures for every test: the devices that a test runs on."""

from collections.abc import Iterator
from typing import Any

import pytest

from minigrad import device as minigrad_device

from tests import strict_cupy

DEVICES = ["cpu", "stand-in"]
if minigrad_device.cuda_status().devices:  # elsewhere there is no such test, rather than a skipped one
    DEVICES.append(pytest.param("gpu", marks=pytest.mark.gpu))


@pytest.fixture
def stand_in() -> Iterator[Any]:
    """The strict stand-in for CuPy, serving the cuda devices, with its count of synchronisations at zero."""
    strict_cupy.synchronizations.clear()
    with minigrad_device.array_module(strict_cupy.cupy, strict_cupy.special):
        yield strict_cupy


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """The name of a device: the host's, the stand-in's and, where there is one, a GPU's."""
    if request.param == "stand-in":
        request.getfixturevalue("stand_in")
    return "cpu" if request.param == "cpu" else "cuda:0"
