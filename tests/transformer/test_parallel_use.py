"""A batch divided over threads: nothing by halves, in the surroundings of the caller, and in training."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from minigrad import parallel
from minigrad.functional.compositions import tapping

from tests.transformer import runs
from tests.transformer.shards import LABELS, SOURCE, TOKENS, computed
from tests.transformer.tiny import assert_same, gradients, tiny_model
from transformer.training.loop import fit
from transformer.training.parallel_gradients import ParallelGradients


@pytest.fixture(autouse=True)
def tiny_models_are_divided(monkeypatch):
    monkeypatch.setattr("transformer.training.threads.SMALL", 0)
    monkeypatch.setattr("transformer.training.threads.SHARD_TOKENS", 1)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert [thread for thread in threading.enumerate() if thread.name.startswith("minigrad")] == []


# ----------------------------------------------------------------- nothing by halves


class Trouble(Exception):
    pass


@pytest.mark.parametrize(("number", "error"), [(0, Trouble("no")), (2, KeyboardInterrupt())], ids=str)
def test_an_exception_in_a_shard_changes_no_gradient(number, error, monkeypatch):
    model = tiny_model()
    _, before = computed(model, 3)
    calls = iter(range(100))
    lock = threading.Lock()
    forward = type(model.encoder).forward

    def failing(self, *args):
        with lock:
            mine = next(calls)
        if mine == number:
            time.sleep(0.03)  # the others go on meanwhile
            raise error
        return forward(self, *args)

    with ParallelGradients(model, 3) as compute:
        with monkeypatch.context() as patch:
            patch.setattr(type(model.encoder), "forward", failing)
            with pytest.raises(type(error)):
                compute(SOURCE, LABELS, 0.1, TOKENS)
        assert_same(gradients(model), before, tolerance=0)
        compute(SOURCE, LABELS, 0.1, TOKENS)
    assert_same(gradients(model), {name: 2 * value for name, value in before.items()}, tolerance=1e-13)


def test_a_failing_hook_changes_no_gradient():
    model = tiny_model()
    _, before = computed(model, 2)

    def hook(gradient):
        raise Trouble

    first, *_, last = model.parameters()
    for parameter in (first, last):
        with parameter.register_hook(hook), ParallelGradients(model, 2) as compute, pytest.raises(Trouble):
            compute(SOURCE, LABELS, 0.1, TOKENS)
    assert_same(gradients(model), before, tolerance=0)


def test_threads_outside_of_the_block_are_refused():
    compute = ParallelGradients(tiny_model(), 2)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="within its block"):
            compute(SOURCE, LABELS)
        with compute:
            pass


@pytest.mark.parametrize("threads", [1, 2])
def test_a_block_within_its_own_block_is_refused_and_leaves_nothing(threads):
    compute = ParallelGradients(tiny_model(), threads)
    with threadpool_limits(2):
        with pytest.raises(RuntimeError, match="entered already"), compute, compute:
            pass
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}
        assert parallel.thread_count() == 1
        with compute:  # again, but one after the other
            assert parallel.thread_count() == threads
        assert parallel.thread_count() == 1


def test_wrong_arguments():
    for threads, error in ((0, ValueError), (2.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match=rf"threads .*{threads}"):
            ParallelGradients(tiny_model(), threads)
    with ParallelGradients(tiny_model(), 2) as compute:
        with pytest.raises(ValueError, match=r"\(7, 9\) and \(6, 9\)"):
            compute(SOURCE, LABELS[1:])
        with pytest.raises(IndexError, match="source ids"):
            compute(SOURCE + 100, LABELS)


# ----------------------------------------------------------------- what surrounds it


def test_one_thread_for_products_inside_and_as_before_afterwards():
    def counts():
        return {pool["num_threads"] for pool in threadpool_info()}

    with threadpool_limits(2):
        with ParallelGradients(tiny_model(), 2):
            assert counts() == {1}
            assert parallel.thread_count() == 2
        assert counts() == {2}
        with ParallelGradients(tiny_model(), 1):
            assert counts() == {2}
            assert parallel.thread_count() == 1


def test_a_model_on_a_gpu_has_one_thread(stand_in):
    model = tiny_model(np.float32, device="cuda")
    with ParallelGradients(model, 2) as compute:
        assert compute.threads == 1
        loss = compute(SOURCE, LABELS, 0.0, TOKENS)
    assert type(loss) is not np.ndarray
    assert all(parameter.grad.device == "cuda:0" for parameter in model.parameters())


def both_at_work(model):
    """While its handle is in a ``with``: two shards wait for each other, so that no thread is done before the other."""
    barrier = threading.Barrier(2, timeout=20)

    def wait(module, args):
        barrier.wait()

    return model.encoder.register_forward_pre_hook(wait)


def test_switches_taps_and_observers_of_the_caller_hold_in_every_shard():
    """Compositions, which name their steps, run under ``fused(False)`` in each thread; `tapping` sees both."""
    model = tiny_model()
    _, expected = computed(model, 1)
    names, threads = [], set()

    def visit(name, tensor):
        names.append(name)
        threads.add(threading.get_ident())

    with tapping(visit):
        computed(model, 1)
        undivided = sorted(names)
        names.clear()
        threads.clear()
        with both_at_work(model):
            _, found = computed(model, 2)
    assert len(threads) == 2
    assert sorted(names) == sorted(2 * undivided)
    assert_same(found, expected, tolerance=1e-11)


def test_hooks_on_parameters_see_the_sum_and_hooks_on_modules_every_shard():
    model = tiny_model()
    _, expected = computed(model, 1)
    seen, threads = [], set()
    name, parameter = list(model.named_parameters())[-1]
    with (both_at_work(model), parameter.register_hook(lambda g: seen.append(g.numpy().copy())),
          model.encoder.register_forward_hook(lambda module, args, output: threads.add(threading.get_ident()))):
        computed(model, 2)
    assert len(seen) == 1
    assert_same({name: seen[0]}, {name: expected[name]}, tolerance=1e-12)
    assert len(threads) == 2


# ----------------------------------------------------------------- in training


def test_a_run_with_threads_resumes_to_the_same_bits(tmp_path):
    """Dropout on, two batches in an update: as one that was never stopped, and not as a run with one thread."""
    runs.run(tmp_path / "whole", threads=2)
    whole = runs.contents(tmp_path / "whole")
    runs.interrupted(tmp_path / "resumed", 6, threads=2)
    runs.run(tmp_path / "resumed", resume=True, threads=2)
    assert runs.contents(tmp_path / "resumed") == whole
    runs.run(tmp_path / "one")
    assert runs.contents(tmp_path / "one")["latest model"] != whole["latest model"]


def test_an_update_that_is_interrupted_leaves_the_model_and_no_thread(tmp_path, monkeypatch):
    """As by a second Ctrl-C, when the first gradients are there."""
    trainer = runs.new_trainer(tmp_path, threads=2)
    before = {name: value.numpy().copy() for name, value in trainer.model.state_dict().items()}
    calls, loss = iter(range(100)), trainer.model.loss

    def interrupted(*args, **kwargs):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return loss(*args, **kwargs)

    monkeypatch.setattr(trainer.model, "loss", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        fit(trainer, show_progress=False)
    assert trainer.progress.step == 0
    for name, value in trainer.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_scale_that_overflows_gives_gradients_that_are_not_finite_and_no_warning(threads):
    model = tiny_model(np.float32)
    with ParallelGradients(model, threads) as gradients:
        assert np.isfinite(gradients(SOURCE, LABELS, scale=2.0**40))
    assert not all(np.isfinite(parameter.grad.numpy()).all() for parameter in model.parameters())
