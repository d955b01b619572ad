"""Recipes: one for every task and one for text, whose models fit the data; each task is learnt by its own."""

import pytest

from transformer.data import build_tokenizers
from transformer.data.tasks import TASKS, get_task
from transformer.training.checkpoints import Run
from transformer.training.loop import train
from transformer.training.recipes import RECIPES, model_config, training_options

# The figures of the README, and the share of a recipe's updates that is enough for them. The site's test has the dates.
FIGURES = {"addition": (0.99, 2 / 3), "copy": (0.999, 1 / 2), "reverse": (0.999, 1 / 2), "sort": (0.999, 2 / 3)}


def prepared(name, train_count):
    """The task, its recipe, training pairs and tokenizers."""
    if name == "dates":
        pytest.importorskip("babel")
    task = get_task(name)
    pairs = task.pairs("train", train_count, seed=1)
    return task, RECIPES[name], pairs, build_tokenizers(task.tokenizer_kind, *zip(*pairs, strict=True))


@pytest.mark.parametrize("name", TASKS)
def test_every_pair_fits_the_model(name):
    """The longest that can be generated, and unseen pairs have no unknown symbol."""
    task, recipe, train_pairs, tokenizers = prepared(name, 2000)
    unseen, config = task.pairs("test", 500, 1), model_config(recipe, *tokenizers)
    sizes = config.source_vocab_size, config.target_vocab_size
    assert sizes == tuple(len(tokenizer.vocabulary) for tokenizer in tokenizers)
    for side, tokenizer in enumerate(tokenizers):
        assert max(len(tokenizer.encode(pair[side])) + 1 for pair in [*train_pairs, *unseen]) <= config.max_length
        assert all(tokenizer.decode(tokenizer.encode(pair[side])) == pair[side] for pair in unseen)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FIGURES)
def test_the_recipe_reaches_the_figure(name, tmp_path):
    """1,000 unseen pairs of the test split, decoded greedily."""
    task, recipe, train_pairs, tokenizers = prepared(name, RECIPES[name]["train_count"])
    figure, share = FIGURES[name]
    options = training_options(recipe | {"steps": round(share * recipe["steps"])})
    run = Run(model_config(recipe, *tokenizers), tokenizers, {}, options)
    result = train(tmp_path, run, train_pairs, task.pairs("valid", recipe["valid_count"], seed=1))
    report = result.translator.evaluate(*zip(*task.pairs("test", 1000, seed=1), strict=True))
    assert report["exact_match"] >= figure
