"""A stream that cannot be written to costs its messages."""

import io
import os
import sys

import pytest

from tests.transformer import runs
from transformer.training.loop import fit
from transformer.training.messages import Messages


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize(("stream", "show"), [(None, False), (Broken(), True)])
def test_a_training_goes_on(stream, show, tmp_path, monkeypatch):
    trainer = runs.new_trainer(tmp_path, steps=10, valid_every=5)
    monkeypatch.setattr(sys, "stderr", stream)
    fit(trainer, show_progress=show, profile=tmp_path / "trace.json")
    assert trainer.progress.step == 10


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a full disk of Linux")
def test_what_a_full_disk_did_not_take_does_not_fail_later():
    with open("/dev/full", "w") as stream:
        messages = Messages(stream)
        messages.say("one")
        assert messages.stream is not stream
        stream.flush()
    messages.say("two")
    assert not messages.isatty()
