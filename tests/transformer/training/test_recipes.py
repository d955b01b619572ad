"""Recipes: one for every task and one for text, whose models fit the data; each task is learnt by its own."""


import pytest

from transformer.data.tasks import TASKS, get_task
from transformer.training.loop import train
from transformer.training.recipes import RECIPES, model_config, task_pairs, task_tokenizers, training_options

FIGURES = {"copy": 0.999, "reverse": 0.999, "sort": 0.999, "addition": 0.99, "dates": 0.99}  # of the README


@pytest.mark.parametrize("name", TASKS)
def test_every_pair_fits_the_model(name):
    """The longest that can be generated, and unseen pairs have no unknown symbol."""
    if name == "dates":
        pytest.importorskip("babel")
    task, recipe = get_task(name), RECIPES[name] | {"train_count": 2000, "valid_count": 10}
    train_pairs, valid_pairs = task_pairs(name, recipe, seed=1)
    assert train_pairs == task.pairs("train", 2000, 1)
    assert valid_pairs == task.pairs("valid", 10, 1)
    tokenizers, unseen = task_tokenizers(task, train_pairs), task.pairs("test", 500, 1)
    config = model_config(recipe, *tokenizers)
    sizes = config.source_vocab_size, config.target_vocab_size
    assert sizes == tuple(len(tokenizer.vocabulary) for tokenizer in tokenizers)
    for side, tokenizer in enumerate(tokenizers):
        assert max(len(tokenizer.encode(pair[side])) + 1 for pair in [*train_pairs, *unseen]) <= config.max_length
        assert all(tokenizer.decode(tokenizer.encode(pair[side])) == pair[side] for pair in unseen)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FIGURES)
def test_the_recipe_reaches_the_figure(name, tmp_path):
    """1,000 unseen pairs of the test split, decoded greedily; minutes for each task."""
    if name == "dates":
        pytest.importorskip("babel")
    recipe, task = RECIPES[name], get_task(name)
    train_pairs, valid_pairs = task_pairs(name, recipe, seed=1)
    tokenizers = task_tokenizers(task, train_pairs)
    result = train(tmp_path, model_config(recipe, *tokenizers), *tokenizers, train_pairs, valid_pairs,
                   training_options(recipe))
    report = result.translator.evaluate(*zip(*task.pairs("test", 1000, seed=1), strict=True))
    assert report["exact_match"] >= FIGURES[name]
