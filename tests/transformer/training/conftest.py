"""A finished run, which tests change copies of."""

import shutil

import pytest

from tests.transformer import runs


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of 6 updates with checkpoints after 4 and 6. Nobody changes it."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    runs.run(out, steps=6, schedule="constant", keep=3)
    return out


@pytest.fixture
def out(finished, tmp_path):
    """A copy."""
    return shutil.copytree(finished, tmp_path / "run")
