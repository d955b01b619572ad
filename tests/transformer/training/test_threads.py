"""Threads: one for small models, all cores for others; and what somebody decided stands. The setting of glibc."""

import ctypes
import os
import platform
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from minigrad import parallel

from transformer.model import TransformerConfig
from transformer.training.memory import keep_freed_memory
from transformer.training.threads import (
    SETTINGS,
    decoding_threads,
    dividing_threads,
    limit_threads,
    suitable_products,
    usable_threads,
)

SMALL = TransformerConfig.tiny(10, 10)
LARGE = replace(SMALL, d_model=256)


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(2):
        yield


def cores(monkeypatch, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(count)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)


def counts():
    return {pool["num_threads"] for pool in threadpool_info()}


@pytest.mark.parametrize(("count", "value", "expected"), [
    (1, "", 1), (8, "", 8), (64, "", 8), (3, "12", 12), (3, "0", 3), (3, "two", 3)])
def test_the_cores_of_this_process_at_most_eight_unless_a_variable_says_how_many(count, value, expected, monkeypatch):
    cores(monkeypatch, count)
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert usable_threads() == expected
    monkeypatch.delattr(os, "sched_getaffinity")  # where the system does not say which
    assert usable_threads() == expected


def test_a_batch_is_divided_for_a_large_model_with_work_for_each_thread():
    tokens = (100, 256, 600, 5000)
    assert [dividing_threads(SMALL, 3, count) for count in tokens] == [1, 1, 1, 1]
    assert [dividing_threads(LARGE, 3, count) for count in tokens] == [1, 1, 2, 3]


def test_products_of_a_small_model_have_one_thread_unless_somebody_decided(monkeypatch):
    for decided, model, threads, expected in ((nullcontext(), LARGE, None, 2), (nullcontext(), SMALL, None, 1),
                                              (limit_threads(2), SMALL, None, 2), (nullcontext(), LARGE, 1, 1)):
        with decided, suitable_products(model, threads):
            assert counts() == {expected}
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    with suitable_products(SMALL):
        assert counts() == {2}


def test_threads_that_leave_in_another_order_leave_the_number_as_it_was(monkeypatch):
    number, entered, left = [2], threading.Event(), threading.Event()

    @contextmanager
    def limits(count):  # one number for the process, as a BLAS has it
        before, number[:] = number[0], [count]
        yield
        number[:] = [before]

    def other():
        with limit_threads(1):
            entered.set()
            left.wait()

    monkeypatch.setattr("transformer.training.threads.threadpool_limits", limits)
    thread = threading.Thread(target=other)
    with limit_threads(1):
        thread.start()
        entered.wait()
    with limit_threads(3):
        left.set()
        thread.join()
        assert number == [3]
    assert number == [2]


@pytest.mark.parametrize(("model", "count", "device", "products", "parts"), [
    (LARGE, 3, "cpu", 1, 3), (LARGE, None, "cpu", 1, 4), (LARGE, 3, "cuda:0", 3, 1),
    (SMALL, 3, "cpu", 3, 1), (SMALL, None, "cpu", 1, 1),
])
def test_threads_divide_batches_of_large_models_or_share_their_products(model, count, device, products, parts,
                                                                        monkeypatch):
    cores(monkeypatch, 4)
    with decoding_threads(model, count, device):
        assert counts() == {products}
        assert parallel.thread_count() == parts
    assert counts() == {2}
    assert parallel.thread_count() == 1


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_glibc_keeps_freed_memory_and_other_systems_are_left_alone(monkeypatch):
    assert keep_freed_memory()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
