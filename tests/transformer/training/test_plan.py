"""The plan for text: what is given stays, the rules follow the amount and the time, and any amount has a plan."""

import math

import pytest

from transformer.data import DataError, build_tokenizers
from transformer.training import plan

TOKENIZERS = build_tokenizers("words", ["a b c"], ["d e"])


def planned(pairs, given, threads=2):
    amount = plan.Amount(pairs, 9 * pairs, 11 * pairs)
    found = plan.complete(given, [], TOKENIZERS, amount, threads)
    return found.options, found.training, found.config, found.expected


@pytest.mark.parametrize("given", [
    {}, {"minutes": 0.01}, {"minutes": 5.0}, {"minutes": 1e6}, {"steps": 1}, {"steps": 7}, {"epochs": 3},
    {"epochs": 2, "minutes": 1.0}, {"preset": "base", "minutes": 30.0},
], ids=str)
@pytest.mark.parametrize("pairs", [1, 30, 5000, 10**7])
def test_any_amount_and_any_length_have_a_plan(pairs, given):
    options, training, config, length = planned(pairs, given)
    assert given.items() <= options.items()
    lengths = {"steps", "epochs", "minutes"}
    assert {name for name in lengths if getattr(training, name)} == (given.keys() & lengths or {"steps"})
    assert length.updates > 0
    assert training.warmup_steps <= max(1, math.ceil(length.updates / 10))
    assert 8 <= length.updates / training.valid_every <= 20 or length.updates < 16
    assert training.valid_first is None or training.valid_first < training.valid_every
    assert 64 <= config.d_model <= 512
    assert 0 <= config.dropout <= 0.4


def test_accumulated_batches_give_fewer_updates_and_as_many_passes():
    one, four = (planned(5000, {"accumulate": n, "epochs": 3})[3] for n in (1, 4))
    assert four.passes == one.passes
    assert four.updates < one.updates / 3


GIVEN = {"batch_tokens": 333, "d_model": 48, "num_heads": 3, "layers": 2, "d_ff": 50, "dropout": 0.07, "steps": 90,
         "learning_rate": 0.02, "warmup_steps": 80, "valid_every": 89, "valid_first": 88, "schedule": "cosine"}


def test_what_is_given_stays():
    options, training, config, _ = planned(5000, GIVEN)
    assert options == GIVEN
    found = vars(training) | vars(config) | {"layers": config.num_decoder_layers}
    assert {name: found[name] for name in GIVEN} == GIVEN
    with pytest.raises(DataError, match="no pairs to train on"):
        plan.plan_text([], {})


def test_time_and_text_make_a_model_wider_and_repetition_raises_its_dropout():
    def widths(*runs):
        return [planned(pairs, {"minutes": minutes})[2].d_model for pairs, minutes in runs]

    few, some, many = widths((5000, 5.0), (50_000, 60.0), (300_000, 240.0))
    assert few < some < many
    assert widths((5000, 5.0)) == widths((5000, 600.0)), "the text is the limit"
    dropouts = [planned(50_000, {"minutes": minutes, "d_model": 128})[2].dropout for minutes in (0.5, 5.0, 50.0)]
    assert dropouts[0] == 0 < dropouts[1] < dropouts[2]
    assert [planned(5000, {"d_model": d_model})[2].num_heads for d_model in (96, 100)] == [3, 1]


@pytest.mark.parametrize(("sources", "targets", "same"), [
    (["Go away! 12"], ["Va-t'en ! Ça"], True),
    (["Go away"], ["行きなさい"], False),
    (["Иди"], ["Іди геть"], True),
    (["Go", "away"], ["Tokyo へ行く東京の人"], False),
    (["12 34"], ["5 6"], False),
])
def test_scripts(sources, targets, same):
    assert plan.same_script(sources, targets) is same


def test_the_vocabulary_grows_slower_than_the_text_and_by_what_characters_need():
    texts = [" ".join(f"{a}{b}" for b in "abcdefghij") for a in "abcdefghij"]
    sizes = [plan.vocabulary_size(texts * times) for times in (1, 100, 10_000)]
    assert sizes[0] < sizes[1] < sizes[2] < 4 * sizes[0]
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + 1000)))
    assert plan.vocabulary_size([characters, characters]) >= 2000
