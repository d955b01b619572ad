"""Some of the items of a sequence: few, read one by one, and many, read in a loop over all."""

import numpy as np
import pytest

from transformer.data.indexed import Selected


@pytest.mark.parametrize("places", [[], [3, 998], [999], range(0, 1000, 2), range(1000)], ids=str)
def test_items_at_places(places):
    items = [f"item {place}" for place in range(1000)]
    selected = Selected(items, np.array(places, int))
    assert list(selected) == selected[:] == [items[place] for place in places]
    assert len(selected) == len(places)
    assert list(Selected(selected, np.arange(len(places))[1:])) == selected[1:]
