"""Each generated task is learnt to the figure of the README, by its recipe, on unseen pairs; minutes each."""

import pytest

from transformer.data.tasks import get_task
from transformer.training.loop import train
from transformer.training.recipes import RECIPES, task_pairs, task_tokenizers

FIGURES = {"copy": 0.999, "reverse": 0.999, "sort": 0.999, "addition": 0.99, "dates": 0.99}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FIGURES)
def test_the_recipe_reaches_the_figure(name, tmp_path):
    """1,000 pairs of the test split, decoded greedily."""
    if name == "dates":
        pytest.importorskip("babel")
    recipe, task = RECIPES[name], get_task(name)
    train_pairs, valid_pairs = task_pairs(name, recipe, recipe.options.seed)
    tokenizers = task_tokenizers(task, train_pairs)
    result = train(tmp_path, recipe.config(*tokenizers), *tokenizers, train_pairs, valid_pairs, recipe.options)
    report = result.translator.evaluate(task.pairs("test", 1000, seed=1))
    assert report["exact_match"] >= FIGURES[name]
