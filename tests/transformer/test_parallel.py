"""A batch divided over threads: the gradients of the undivided one, the same bits every time, and nothing by halves."""

import itertools
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import minigrad
from minigrad import functional as F
from minigrad import parallel
from minigrad.tap import tapping

from tests.transformer import runs
from tests.transformer.tiny import EOS, PAD, VOCABULARY, assert_same, gradients, tiny_model
from transformer.parallel import ParallelGradients, split
from transformer.train import fit


def batch(rows=7, longest=9, seed=3):
    """Rows of unequal lengths on both sides, in no order, with padding columns that all rows but one have."""
    rng = np.random.default_rng(seed)
    source, labels = np.full((2, rows, longest), PAD)
    for row in range(rows):
        for ids in (source[row], labels[row]):
            length = longest if row == 2 else int(rng.integers(2, longest - 2))
            ids[:length] = rng.integers(EOS + 1, VOCABULARY, length)
            ids[length - 1] = EOS
    return source, labels


SOURCE, LABELS = batch()
TOKENS = np.count_nonzero(LABELS)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert [thread for thread in threading.enumerate() if thread.name.startswith("minigrad")] == []


def computed(model, threads, calls=1, source=SOURCE, labels=LABELS):
    """The losses of `calls` batches, and the sum of their gradients by name; dropout as in step 5 of seed 6."""
    model.zero_grad()
    with minigrad.random.fork(6), ParallelGradients(model, threads) as compute:
        minigrad.random.set_step(5)
        losses = [float(compute(source, labels, 0.1, TOKENS)) for _ in range(calls)]
    return losses, gradients(model)


# ----------------------------------------------------------------- right


@pytest.mark.parametrize("changes", [{}, {"norm": "post"}, {"share_embeddings": True, "tie_output": True},
                                     {"positions": "learned", "num_decoder_layers": 2}], ids=str)
@pytest.mark.parametrize("threads", [2, 3, 7, 20])
def test_the_gradients_of_the_undivided_batch(threads, changes):
    model = tiny_model(**changes)
    (loss,), expected = computed(model, 1)
    (divided,), found = computed(model, threads)
    assert divided == pytest.approx(loss, rel=1e-13)
    assert_same(found, expected, tolerance=1e-12)


def test_one_thread_is_an_ordinary_backward_to_the_bit():
    model = tiny_model(np.float32, dropout=0.3)
    (loss,), found = computed(model, 1)
    model.zero_grad()
    with minigrad.random.fork(6):
        minigrad.random.set_step(5)
        expected = model.loss(SOURCE, LABELS, 0.1, reduction="sum")
        (expected / TOKENS).backward()
    assert loss == float(expected)
    assert_same(found, gradients(model), tolerance=0)


@pytest.mark.parametrize("threads", [2, 3])
def test_gradients_that_are_there_are_added_to(threads):
    model = tiny_model()
    _, once = computed(model, threads)
    _, twice = computed(model, threads, calls=2)
    assert_same(twice, {name: 2 * gradient for name, gradient in once.items()}, tolerance=1e-13)


def test_one_sentence():
    model = tiny_model()
    (loss,), expected = computed(model, 1, source=SOURCE[:1], labels=LABELS[:1])
    (divided,), found = computed(model, 2, source=SOURCE[:1], labels=LABELS[:1])
    assert divided == pytest.approx(loss, rel=1e-13)
    assert_same(found, expected, tolerance=1e-12)


def test_masks_are_those_of_the_shards_keys():
    """One shard after another, by hand, in an undivided pass each: dropout's masks are the same, to the bit."""
    model = tiny_model(dropout=0.3)
    losses, found = computed(model, 3, calls=2)
    model.zero_grad()
    expected, drawn = [], set()
    with minigrad.random.fork(6):
        minigrad.random.set_step(5)
        for _ in range(2):
            shards = split(SOURCE, LABELS, PAD, 3)
            seeds = minigrad.random.next_generator().integers(2**64, size=3, dtype=np.uint64).tolist()
            drawn.update(seeds)
            total = 0.0
            for shard, seed in zip(shards, seeds, strict=True):
                with minigrad.random.fork(seed):
                    loss = model.loss(*shard, 0.1, reduction="sum")
                    (loss / TOKENS).backward()
                    total += float(loss)
            expected.append(total)
    assert losses == expected
    assert losses[0] != losses[1], "each batch of an update has masks of its own"
    assert len(drawn) == 6
    assert_same(found, gradients(model), tolerance=1e-13)


@pytest.mark.parametrize("threads", [2, 4])
def test_timing_does_not_show(threads, monkeypatch):
    """float32 and dropout: shards that are held up at random give the same bits."""
    model = tiny_model(np.float32, dropout=0.3, num_encoder_layers=2)
    expected = computed(model, threads)
    rng, linear = np.random.default_rng(0), F.linear

    def held_up(*arguments):
        time.sleep(float(rng.uniform(0, 0.004)))
        return linear(*arguments)

    monkeypatch.setattr(F, "linear", held_up)
    for _ in range(3):
        losses, found = computed(model, threads)
        assert losses == expected[0]
        assert_same(found, expected[1], tolerance=0)


# ----------------------------------------------------------------- the shards


def test_every_row_is_in_one_shard_with_rows_of_like_length():
    shards = split(SOURCE, LABELS, PAD, 3)
    assert len(shards) == 3
    found = [(strip(source), strip(labels)) for shard in shards for source, labels in zip(*shard, strict=True)]
    assert sorted(found) == sorted((strip(s), strip(t)) for s, t in zip(SOURCE, LABELS, strict=True))
    for shard in shards:
        assert all((ids[:, -1] != PAD).any() for ids in shard), "no column of padding alone is left"
    lengths = [[len(strip(s)) + len(strip(t)) for s, t in zip(*shard, strict=True)] for shard in shards]
    assert all(max(shorter) <= min(longer) for shorter, longer in itertools.pairwise(lengths))
    assert sum(shard.source.size + shard.labels.size for shard in shards) < 0.75 * (SOURCE.size + LABELS.size)


def strip(ids):
    return tuple(ids[ids != PAD].tolist())


@pytest.mark.parametrize("shards", [2, 3, 5])
def test_shards_have_about_as_many_real_tokens(shards):
    source, labels = batch(rows=60, longest=12)
    tokens = [np.count_nonzero(shard.source) + np.count_nonzero(shard.labels)
              for shard in split(source, labels, PAD, shards)]
    assert max(tokens) - min(tokens) <= 24, "a row has 24 at most"


def test_equal_rows_are_divided_equally():
    ids = np.full((64, 5), 4)
    assert [len(shard.source) for shard in split(ids, ids, PAD, 4)] == [16, 16, 16, 16]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_every_shard_has_a_row(rows):
    source, labels = batch(rows=9)
    source, labels = source[:rows], labels[:rows]
    source[0] = 5  # one row with most of the tokens
    source[1:, 2:] = labels[1:, 1:] = PAD
    shards = split(source, labels, PAD, 4)
    assert len(shards) == min(rows, 4)
    assert all(len(shard.source) for shard in shards)


def test_rows_of_padding_alone():
    ids = np.full((3, 4), PAD)
    shards = split(ids, ids, PAD, 2)
    assert [shard.labels.shape[1] for shard in shards] == [1, 1]
    assert sum(len(shard.labels) for shard in shards) == 3


# ----------------------------------------------------------------- nothing by halves


class Trouble(Exception):
    pass


@pytest.mark.parametrize("error", [Trouble("no"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("number", [0, 2])
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
    with pytest.raises(RuntimeError, match=r"its threads run within its block; use it as 'with ParallelGradients"):
        compute(SOURCE, LABELS)
    with compute:
        pass
    with pytest.raises(RuntimeError, match="its threads run within its block"):
        compute(SOURCE, LABELS)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        ParallelGradients(tiny_model(), 0)
    with ParallelGradients(tiny_model(), 2) as compute:
        with pytest.raises(ValueError, match=r"of the same batch, got ids of shapes \(7, 9\) and \(6, 9\)"):
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
        _, found = computed(model, 2)
    assert len(threads) == 2
    assert sorted(names) == sorted(2 * undivided)
    assert_same(found, expected, tolerance=1e-11)


def test_no_grad_holds_in_every_shard():
    with ParallelGradients(tiny_model(), 2) as compute, minigrad.no_grad(), \
            pytest.raises(RuntimeError, match="was not recorded"):
        compute(SOURCE, LABELS)


def test_hooks_on_parameters_see_the_sum_and_hooks_on_modules_every_shard():
    model = tiny_model()
    _, expected = computed(model, 1)
    seen, threads = [], set()
    name, parameter = list(model.named_parameters())[-1]
    with parameter.register_hook(lambda g: seen.append(g.numpy().copy())), \
            model.encoder.register_forward_hook(lambda module, args, output: threads.add(threading.get_ident())):
        computed(model, 2)
    assert len(seen) == 1
    assert_same({name: seen[0]}, {name: expected[name]}, tolerance=1e-12)
    assert len(threads) == 2


def test_a_profile_sees_both_threads():
    model = tiny_model()
    with minigrad.profile() as one:
        computed(model, 1)
    with minigrad.profile() as two:
        computed(model, 2)
    undivided, divided = one.operations["layer_norm"], two.operations["layer_norm"]
    assert divided.forward_calls == divided.backward_calls == 2 * undivided.forward_calls > 0
    assert len(two.threads) == 2


# ----------------------------------------------------------------- in training


def test_a_run_with_threads_resumes_to_the_same_bits(tmp_path):
    """Dropout on, two batches in an update: as one that was never stopped, and not as a run with one thread."""
    runs.run(tmp_path / "whole", threads=2)
    whole = runs.contents(tmp_path / "whole")
    for step in (1, 6):
        runs.interrupted(tmp_path / str(step), step, threads=2)
        runs.run(tmp_path / str(step), resume=True, threads=2)
        assert runs.contents(tmp_path / str(step)) == whole
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


def test_two_threads_learn_what_one_learns(tmp_path):
    """Without dropout the updates are those of one thread, up to rounding (of which Adam makes key biases)."""
    one, two = (runs.new_trainer(tmp_path / str(threads), {"dropout": 0.0}, threads=threads) for threads in (1, 2))
    for trainer in (one, two):
        trainer.model.to(dtype=np.float64)
        trainer.options = replace(trainer.options, steps=3, valid_every=3)
        fit(trainer, show_progress=False)
    for name, value in one.model.state_dict().items():
        np.testing.assert_allclose(two.model.state_dict()[name].numpy(), value.numpy(), rtol=0, atol=1e-9, err_msg=name)
