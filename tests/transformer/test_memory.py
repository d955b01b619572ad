"""The setting of the C library: asked for where it exists, and left alone elsewhere."""

import ctypes
import platform
import sys

import pytest

from transformer.training.memory import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_glibc_takes_it():
    assert keep_freed_memory()
    assert keep_freed_memory(), "twice is as good as once"


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_are_left_alone(system, monkeypatch):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("the C library was asked"))
    assert not keep_freed_memory()


def test_a_library_without_it(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
