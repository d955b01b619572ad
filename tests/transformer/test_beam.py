"""Beam search against exhaustive search, and against a plain beam that never stops early."""

import math

import numpy as np
import pytest

from tests.transformer.decoding_models import (
    EOS,
    LETTERS,
    all_translations,
    next_log_probabilities,
    peaked_model,
    prefer,
    random_sources,
)
from transformer.decode import beam_search, greedy
from transformer.decode.search import Search


def shapes_of_steps(monkeypatch) -> list[tuple[int, int]]:
    """A list that will get (sentences, hypotheses of each) for every step from now on."""
    shapes, original = [], Search.logits
    monkeypatch.setattr(Search, "logits", lambda steps: shapes.append(steps.ids.shape[:2]) or original(steps))
    return shapes


ALPHAS = [0.0, 0.6, 1.0]
every_alpha = pytest.mark.parametrize("alpha", ALPHAS)


def normalised(log_probability: float, tokens: int, alpha: float) -> float:
    """Wu et al. 2016, equation 14, written out once more; `tokens` counts end-of-sentence."""
    return log_probability / ((5 + tokens) ** alpha / (5 + 1) ** alpha)


# --- Against exhaustive search --------------------------------------------------------------------


@every_alpha
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_finds_what_exhaustive_search_finds(seed, alpha):
    """121 translations end within five tokens; the beam is wide enough to lose none of them."""
    model, sources = prefer(peaked_model(seed, sharpness=4.0), eos=-1.0), random_sources(seed, (4, 1))
    found = beam_search(model, sources, beam_size=400, num_best=10, max_length=5, alpha=alpha)
    for hypotheses, source in zip(found, sources, strict=True):
        everything = [(normalised(value, len(ids), alpha), ids, value)
                      for ids, value in all_translations(model, source, 5).items() if ids[-1] == EOS]
        assert len(everything) == 121
        expected = sorted(everything, reverse=True)[:10]
        assert [(*h.ids, EOS) for h in hypotheses] == [ids for _, ids, _ in expected]
        np.testing.assert_allclose([h.score for h in hypotheses], [score for score, _, _ in expected], rtol=1e-9)
        np.testing.assert_allclose([h.log_probability for h in hypotheses], [v for _, _, v in expected], rtol=1e-9)
        assert all(h.finished for h in hypotheses)


@every_alpha
def test_those_cut_off_come_after_those_that_ended(alpha):
    """More are asked for than can end: 121 that do, by score, and then those of five letters, by theirs."""
    model, source = peaked_model(0, sharpness=3.0), random_sources(0, (4,))
    (found,) = beam_search(model, source, 400, num_best=150, max_length=5, alpha=alpha)
    everything = all_translations(model, source[0], 5)
    assert len(everything) == 121 + 243
    cut_off = sorted(((normalised(value, 5, alpha), ids)
                      for ids, value in everything.items() if ids[-1] != EOS), reverse=True)[:29]
    assert [h.finished for h in found] == [True] * 121 + [False] * 29
    assert [tuple(h.ids) for h in found[121:]] == [ids for _, ids in cut_off]
    np.testing.assert_allclose([h.score for h in found[121:]], [score for score, _ in cut_off], rtol=1e-9)
    for part in (found[:121], found[121:]):
        assert [h.score for h in part] == sorted((h.score for h in part), reverse=True)


def test_a_constant_added_to_the_logits_changes_nothing():
    model, sources = peaked_model(1), random_sources(1)
    before = beam_search(model, sources, 4, 2)
    model.projection.bias.data[...] += 1000.0
    for old, new in zip(before, beam_search(model, sources, 4, 2), strict=True):
        assert [h.ids for h in new] == [h.ids for h in old]
        np.testing.assert_allclose([h.score for h in new], [h.score for h in old], rtol=1e-9)


# --- Narrow beams ---------------------------------------------------------------------------------


def plain_beam(model, source, size, num_best, max_length, alpha, following_of=next_log_probabilities):
    """One sentence, computed anew at each step, always to the greatest length: (ids, score, finished), best first.

    `following_of` gives the log-probabilities of what follows some ids, as `next_log_probabilities` does.
    """
    beam, done = [((), 0.0)], []
    for length in range(1, max_length + 1):
        if not beam:
            break
        following = following_of(model, source, [list(ids) for ids, _ in beam])
        candidates = [((*ids, token), total + row[token]) for (ids, total), row in zip(beam, following, strict=True)
                      for token in (EOS, *LETTERS) if row[token] > -math.inf]
        candidates.sort(key=lambda candidate: -candidate[1])
        beam = []
        for ids, total in candidates[:size]:
            if ids[-1] == EOS:
                done.append((ids[:-1], normalised(total, length, alpha), True))
            else:
                beam.append((ids, total))
    done.sort(key=lambda hypothesis: -hypothesis[1])
    cut_off = [(ids, normalised(total, len(ids), alpha), False) for ids, total in beam]
    return (done + cut_off)[:num_best]


@every_alpha
@pytest.mark.parametrize(("size", "num_best"), [(1, 1), (3, 2), (5, 5)])
def test_stopping_early_loses_nothing(size, num_best, alpha):
    """The batched beam with cache and early stopping gives what a beam gives that goes on to the end."""
    for seed in (1, 4):
        model, sources = prefer(peaked_model(seed), eos=-1.5), random_sources(seed)
        found = beam_search(model, sources, size, num_best, 9, alpha)
        for hypotheses, source in zip(found, sources, strict=True):
            expected = plain_beam(model, source, size, num_best, 9, alpha)
            assert [(tuple(h.ids), h.finished) for h in hypotheses] == [(ids, ended) for ids, _, ended in expected]
            np.testing.assert_allclose([h.score for h in hypotheses], [score for _, score, _ in expected], rtol=1e-9)


def test_a_search_ends_when_nothing_can_win_any_more(monkeypatch):
    """The first step all but ends the sentence: what is open then cannot catch up, however long it may become."""
    model, steps = prefer(peaked_model(0), eos=60.0), shapes_of_steps(monkeypatch)
    for alpha in ALPHAS:
        steps.clear()
        beam_search(model, random_sources(0), 4, 1, 20, alpha)
        assert steps == [(5, 1)], alpha  # one step of five sentences


@pytest.mark.parametrize(("alpha", "wins"), [(2.0, "long"), (0.6, "short"), (0.0, "short")])
def test_a_long_translation_may_overtake_one_that_has_ended(monkeypatch, alpha, wins):
    """The normalised score of what is open can rise with its length, since log-probabilities are negative.

    The first step gives its end 0.55 and a letter 0.22, which eight nearly certain steps follow. One step further on,
    the letter's score is still below that of the end; the search must not stop there.
    """
    first, middle, last = [0.55, 0.22, 0.13, 0.1], [0.001, 0.997, 0.001, 0.001], [0.997, 0.001, 0.001, 0.001]
    following, computed = iter([first, *[middle] * 7, last, *[middle] * 31]), Search.logits

    def logits(steps):
        computed(steps)  # which fills the cache
        return np.tile(np.log([1e-300, 1e-300, *next(following)]), (steps.ids.shape[0] * steps.ids.shape[1], 1))

    model = peaked_model(0)
    monkeypatch.setattr(Search, "logits", logits)
    ((found,),) = beam_search(model, [[3, EOS]], 2, 1, max_length=20, alpha=alpha)
    assert found.ids == ([3] * 8 if wins == "long" else [])
    assert found.finished


def test_finished_sentences_leave_the_batch(monkeypatch):
    model, shapes = peaked_model(1), shapes_of_steps(monkeypatch)
    found = greedy(model, random_sources(1), max_length=15)
    lengths = [len(h.ids) + h.finished for h in found]
    assert shapes == [(sum(length > step for length in lengths), 1) for step in range(max(lengths))]
    assert len(set(shapes)) > 1


# --- The length penalty ---------------------------------------------------------------------------


def test_the_length_penalty_favours_longer_translations():
    """A sign error would favour shorter ones. The beam is exhaustive, so that only the ranking differs."""
    lengths = np.array([[
        [len(hypotheses[0].ids) for hypotheses in
         beam_search(peaked_model(seed, sharpness=2.0), random_sources(seed), 400, 1, 5, alpha)]
        for seed in range(3)] for alpha in (0.0, 0.6, 1.0, 3.0)])
    assert (np.diff(lengths, axis=0) >= 0).all()
    assert lengths[0].sum() < lengths[-1].sum()


# --- Pieces and mistakes --------------------------------------------------------------------------


def test_the_smaller_id_comes_first_and_what_never_comes_last(monkeypatch):
    logits = np.array([[0.5, 1e4, 2.0, 2.0], [-1.0, 3.0, -math.inf, 1.0]])
    monkeypatch.setattr(Search, "logits", lambda steps: logits)
    tokens, values = Search(peaked_model(0), None, np.zeros((2, 1), int), {}, np.full(2, 9), 2, [0, 1], size=9
                            )._candidates()
    assert tokens[:, 0, :2].tolist() == [[2, 3], [3, 0]]  # where there are no others, −inf marks that
    np.testing.assert_allclose(values[0, 0, :2], 2 - 1e4, rtol=1e-14)
    assert (values[1, 0, 1:] == -math.inf).all()


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"beam_size": 0}, ValueError, "beam_size .* 0"),
    ({"beam_size": 2, "num_best": 3}, ValueError, "beam of 2 .* 3 best"),
    ({"beam_size": 2, "alpha": -0.1}, ValueError, "alpha .* -0.1"),
    ({"beam_size": 2, "alpha": math.nan}, ValueError, "alpha .* nan"),
], ids=str)
def test_mistakes(arguments, error, message):
    with pytest.raises(error, match=message):
        beam_search(peaked_model(0), [[3, EOS]], **arguments)
