"""Generated tasks: right answers, the text forms, determinism, and splits that share no source."""

from collections import Counter

import pytest

from transformer.data.tasks import SPLITS, TASKS, get_task, split_of


def added(symbols):
    x, y = "".join(symbols).split("+")
    assert (str(int(x)), str(int(y))) == (x, y)  # no leading zero
    return str(int(x) + int(y))


# The alphabet, the answer, and up to which length splits share a source: there are 10 + 100 strings, or 26.
SYMBOL_TASKS = {"copy": ("abcdefghij", list, 2), "reverse": ("abcdefghijklmnopqrstuvwxyz", lambda s: s[::-1], 1),
                "sort": ("abcdefghij", sorted, 2), "addition": ("0123456789+", added, 0)}


def pairs(name, split, count, seed=0):
    if name == "dates":
        pytest.importorskip("babel", reason="dates need the data extra")
    return get_task(name).pairs(split, count, seed)


@pytest.mark.parametrize("name", SYMBOL_TASKS)
def test_symbol_tasks(name):
    """Right answers, all symbols, and lengths from 1 to 10, each as often."""
    alphabet, answer, _ = SYMBOL_TASKS[name]
    sources, targets = ([text.split(" ") for text in side] for side in zip(*pairs(name, "train", 5000), strict=True))
    assert targets == [list(answer(source)) for source in sources]
    assert set().union(*sources) == set(alphabet)
    lengths = Counter(map(len, sources))
    if name == "addition":  # two numbers of one to three digits, mostly of three
        assert (min(lengths), max(lengths), lengths.most_common(1)[0][0]) == (3, 7, 7)
    else:
        assert sorted(lengths) == list(range(1, 11))
        assert all(400 < count < 600 for count in lengths.values()), lengths  # 500 ± 4.7 standard deviations


@pytest.mark.parametrize("name", TASKS)
def test_pairs_are_a_function_of_split_count_and_seed(name):
    """And splits share no source but the shortest."""
    *_, few = SYMBOL_TASKS.get(name, (0,))
    for seed, split in enumerate(SPLITS):
        found = pairs(name, split, 2000, seed)
        assert all(split_of(source) == split for source, _ in found if len(source.split()) > few)
        assert pairs(name, split, 80, seed) == found[:80] != pairs(name, split, 80, seed + 1)
    assert pairs(name, "test", 0) == []


def test_the_split_of_a_source_never_changes():
    # Fixed by the hash: were it to move, old checkpoints would be scored on what they were trained on.
    assert [split_of(source) for source in ("a", "1", "2", "3")] == ["train", "train", "test", "valid"]
    assert Counter(split_of(str(i)) for i in range(20_000))["train"] == pytest.approx(18_000, abs=200)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"unknown task 'x'.* copy, reverse, sort, addition, dates"):
        get_task("x")
    with pytest.raises(ValueError, match=r"unknown split 'dev'.* train, valid, test"):
        get_task("copy").pairs("dev", 1, 0)
