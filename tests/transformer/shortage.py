"""A run that is out of memory: how it ends, and whether what its line says helps."""

import re

import numpy as np
import pytest

from tests.transformer import runs
from transformer.training.loop import TrainingError

OPTIONS = {"steps": 6, "schedule": "constant"}
UNABLE = r"\(Unable to allocate .* for an array with shape \(10000000, 10000000\) and data type float64\)"


def too_much(*arguments, **keywords):
    """More than any machine can address."""
    return np.zeros((10**7, 10**7))


def failing(error):
    """A function that raises it."""
    def fail(*arguments, **keywords):
        raise error

    return fail


def ended(out, **changes):
    """The one line with which a run ends."""
    with pytest.raises(TrainingError) as caught:
        runs.run(out, **{**OPTIONS, **changes})
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None, "nothing keeps the arrays alive"
    return str(caught.value)


def followed(out, said, **changes):
    """The options of the run that ends well, by doing as each line says."""
    while said:
        way = re.search(r"; (go on with --resume|give) (--[a-z-]+) (\w+)", said)
        assert way, said
        value = int(way[3]) if way[3].isdigit() else way[3]
        changes = {**changes, way[2][2:].replace("-", "_"): value, "resume": "resume" in way[1]}
        before, said = said, ""
        try:
            runs.run(out, **{**OPTIONS, **changes})
        except TrainingError as error:
            said = str(error)
        assert said != before
    return changes
