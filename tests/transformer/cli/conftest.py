"""Commands that train draw no curves: that takes longer than to train for a few steps."""

import pytest

from transformer.training.log import Log


@pytest.fixture(autouse=True)
def no_curves(monkeypatch):
    monkeypatch.setattr(Log, "draw", lambda self, metric: None)
