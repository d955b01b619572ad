"""For every test: the devices that it runs on; and what the report says when the browser tests were skipped."""

import os

import pytest

import minigrad
from minigrad.device import devices as minigrad_device

from tests import strict_cupy
from tests.explorer.browser import NOT_RUN
from tests.strict_cupy.kernels import bernoulli

GPU = minigrad_device.cuda_status()
# Where there is none, there is no such test, rather than a skipped one.
CARD = [pytest.param("gpu", marks=pytest.mark.gpu)] if GPU.devices else []
DEVICES = ["cpu", "stand-in", *CARD]


def pytest_configure(config):
    """Where the tests for a GPU are asked for and there is none, say why: to find no test at all explains nothing."""
    if config.option.markexpr == "gpu" and not GPU.devices:
        raise pytest.UsageError(f"no GPU to test on: {GPU.reason}; make test-gpu CUDA=cuda12, or cuda13, installs CuPy "
                                "for these tests")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """A process more than there are cores: some of the tests wait, for a browser or for another process."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items):
    """What may take longest begins first: at the end, one process would work on it and the others wait."""
    limits = {item: marker.args[0] for item in items if (marker := item.get_closest_marker("timeout"))}
    items.sort(key=lambda item: -limits.get(item, 0))


@pytest.fixture
def stand_in():
    """The strict stand-in for CuPy, serving the cuda devices, with its counts at zero."""
    strict_cupy.clear()
    with minigrad_device.array_module(strict_cupy.cupy, strict_cupy.special):
        yield strict_cupy
    strict_cupy.clear()  # a limit of memory would hold for tests that do not use this fixture


@pytest.fixture(params=DEVICES)
def device(request):
    """The name of a device: the host's, the stand-in's and, where there is one, a GPU's."""
    if request.param == "stand-in":
        request.getfixturevalue("stand_in")
    return "cpu" if request.param == "cpu" else "cuda:0"


@pytest.fixture
def same_masks(monkeypatch):
    """The host draws masks of dropout as a GPU does, so that the two can be compared."""
    drawn = minigrad.random.bernoulli_mask

    def draw(key, shape, keep, device="cpu"):
        return bernoulli(key, 0, round(keep * 2**32), shape) if device == "cpu" else drawn(key, shape, keep, device)

    monkeypatch.setattr(minigrad.random, "bernoulli_mask", draw)


@pytest.fixture(params=["cpu", *CARD])
def computing_device(request):
    """The name of a device that computes by itself, for finite differences: the stand-in has NumPy do it, slowly."""
    return "cpu" if request.param == "cpu" else "cuda:0"


def pytest_terminal_summary(terminalreporter):
    """One line above the closing one, where browser tests were skipped for want of a browser: why, and the remedy."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", []) if report.when == "setup"]
    browserless = [reason.partition(f"{NOT_RUN}: ")[2] for reason in reasons if f"{NOT_RUN}: " in reason]
    if browserless:
        terminalreporter.write_line(f"browser tests that did not run: {len(browserless)}: {browserless[0]}")
