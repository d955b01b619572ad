"""The bits of a sum of several passes depend on their number alone: not on who adds up which, nor on when."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigrad.parallel import TreeSum, largest_spans

# Sums of these depend on their order: by rounding, by overflow on the way, by the sign of zero.
SPECIAL = [1.0, -1.0, 1e-8, 3.0, -0.0, 0.0, 1e-40, -1e-45, 3e38, -3e38, np.inf, np.nan]
NUMBERS = st.sampled_from(SPECIAL) | st.floats(width=32)


def added_up(passes, whole):
    """The sum by its definition: of the first half, with the odd pass, plus of the second."""
    if whole[1] - whole[0] < 2:
        return passes.get(whole[0])
    middle = (whole[0] + whole[1] + 1) // 2
    first, second = added_up(passes, (whole[0], middle)), added_up(passes, (middle, whole[1]))
    return first + second if first is not None and second is not None else second if first is None else first


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(st.data())
def test_the_sum_depends_neither_on_who_adds_nor_on_when(data):
    """Each of several ranks adds up what it can, in any order, and whoever gets that does so, too."""
    count = data.draw(st.integers(1, 17))
    values = data.draw(st.lists(NUMBERS, min_size=count, max_size=count))
    reached = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    passes = {n: np.array([value], np.float32) for n, value in enumerate(values) if reached[n]}
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=5)))
    gathered = []
    for own in zip([0, *cuts], [*cuts, count], strict=True):
        tree = TreeSum(count)
        for n in data.draw(st.permutations([n for n in range(*own) if n in passes])):
            tree.add((n, n + 1), passes[n], False)
        found = [(span, tree.total(span)) for span in largest_spans(own, (0, count))]
        gathered += [(span, part) for span, part in found if part]
    whole = TreeSum(count)
    for span, (value, _) in data.draw(st.permutations(gathered)):
        whole.add(span, value.copy(), True)
    total = whole.total()
    expected = added_up(passes, (0, count))
    assert (total is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(total[0], expected)
        assert np.array_equal(np.signbit(total[0]), np.signbit(expected)) or np.isnan(expected)
    assert all(passes[n].tobytes() == np.float32(values[n]).tobytes() for n in passes), "what was borrowed is untouched"


@given(st.integers(1, 40), st.data())
def test_the_largest_spans_are_few_and_cover_what_is_own(count, data):
    start, end = sorted(data.draw(st.tuples(st.integers(0, count), st.integers(0, count))))
    spans = largest_spans((start, end), (0, count))
    assert [n for span in spans for n in range(*span)] == list(range(start, end))
    assert len(spans) <= 2 * count.bit_length()
