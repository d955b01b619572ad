"""Commands that train draw no curves: that takes longer than to train for a few steps."""

import pytest

from transformer.training.log import Log

draw = Log.draw


@pytest.fixture(autouse=True)
def no_curves(monkeypatch):
    monkeypatch.setattr(Log, "draw", lambda self, metric: None)


@pytest.fixture
def curves(no_curves, monkeypatch):
    """They are drawn after all."""
    monkeypatch.setattr(Log, "draw", draw)
