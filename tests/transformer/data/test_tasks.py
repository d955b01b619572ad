"""Generated tasks: right answers, the text forms, determinism, and splits that share no source."""

from collections import Counter

import pytest

from transformer.data.tasks import SPLITS, TASKS, get_task, split_of

# The alphabet, the answer, and up to which length splits share a source: there are 10 + 100 strings, or 26.
SYMBOL_TASKS = {"copy": ("abcdefghij", list, 2), "reverse": ("abcdefghijklmnopqrstuvwxyz", lambda s: s[::-1], 1),
                "sort": ("abcdefghij", sorted, 2)}


def pairs(name, split, count, seed=0):
    if name == "dates":
        pytest.importorskip("babel", reason="dates need the data extra")
    return get_task(name).pairs(split, count, seed)


@pytest.mark.parametrize("name", SYMBOL_TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_symbol_tasks(name, split):
    """Right answers, all symbols, and lengths from 1 to 10, each as often."""
    alphabet, answer, _ = SYMBOL_TASKS[name]
    lengths, seen = Counter(), set()
    for source, target in pairs(name, split, 5000):
        symbols = source.split(" ")
        seen |= set(symbols)
        lengths[len(symbols)] += 1
        assert target.split(" ") == answer(symbols)
    assert seen == set(alphabet)
    assert sorted(lengths) == list(range(1, 11))
    assert all(400 < count < 600 for count in lengths.values()), lengths  # 500 ± 4.7 standard deviations


def test_addition():
    shapes = Counter()
    for source, target in pairs("addition", "train", 2000):
        x, y = (number.replace(" ", "") for number in source.split(" + "))
        assert source == f"{' '.join(str(int(x)))} + {' '.join(str(int(y)))}"  # no leading zero
        assert target == " ".join(str(int(x) + int(y)))
        shapes[len(x), len(y)] += 1
    assert shapes[3, 3] > 1100  # 0.8² of 2,000 is 1,280
    assert {length for shape in shapes for length in shape} == {1, 2, 3}


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
