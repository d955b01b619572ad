"""Threads for the matrix products: one for small models, all for others, and what somebody decided stands."""

from dataclasses import replace

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from transformer import threads
from transformer.config import TransformerConfig
from transformer.threads import limit_threads, suitable_threads

SMALL = TransformerConfig.tiny(10, 10)
LARGE = replace(SMALL, d_model=256)


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch):
    for name in threads._SETTINGS:
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(2):
        yield


def counts():
    return {pool["num_threads"] for pool in threadpool_info()}


def test_one_for_a_small_model_and_all_for_a_large_one():
    with suitable_threads(SMALL):
        assert counts() == {1}
        with suitable_threads(SMALL):
            assert counts() == {1}
    assert counts() == {2}
    with suitable_threads(LARGE):
        assert counts() == {2}


def test_what_was_decided_stands(monkeypatch):
    with limit_threads(2), suitable_threads(SMALL):
        assert counts() == {2}
    with suitable_threads(SMALL):
        assert counts() == {1}
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    with suitable_threads(SMALL):
        assert counts() == {2}
