"""Recipes: one for every task and one for text, whose models fit the data."""

from dataclasses import replace

import pytest

from tests.transformer import runs
from transformer import Transformer, TransformerConfig
from transformer.data import build_tokenizers
from transformer.data.tasks import TASKS, get_task
from transformer.training.checkpoints import Run
from transformer.training.loop import fit
from transformer.training.recipes import RECIPES, task_pairs, task_tokenizers
from transformer.training.trainer import Trainer

LONGEST = {  # source and target tokens, end-of-sentence included
    "copy": (11, 11), "reverse": (11, 11), "sort": (11, 11), "addition": (8, 5),
}


def prepared(name, train_count=300, valid_count=10):
    """A recipe with little data, its pairs and its tokenizers."""
    if name == "dates":
        pytest.importorskip("babel")
    recipe = replace(RECIPES[name], train_count=train_count, valid_count=valid_count)
    train_pairs, valid_pairs = task_pairs(name, recipe, seed=1)
    return recipe, train_pairs, valid_pairs, task_tokenizers(get_task(name), train_pairs)


def test_there_is_a_recipe_for_every_task_and_for_text():
    assert RECIPES.keys() == {*TASKS, "text"}


@pytest.mark.parametrize("name", TASKS)
def test_the_pairs_are_those_of_the_task(name):
    recipe, train_pairs, valid_pairs, _ = prepared(name, 20, 10)
    assert train_pairs == get_task(name).pairs("train", 20, 1)
    assert valid_pairs == get_task(name).pairs("valid", 10, 1)
    assert recipe.options == RECIPES[name].options


@pytest.mark.parametrize("name", TASKS)
def test_every_pair_fits_the_model(name):
    """The longest that can be generated, and unseen pairs have no unknown symbol."""
    recipe, train_pairs, _, (source, target) = prepared(name, 2000)
    config = recipe.config(source, target)
    assert (config.source_vocab_size, config.target_vocab_size) == (len(source.vocabulary), len(target.vocabulary))
    pairs = [*train_pairs, *get_task(name).pairs("test", 500, 1)]
    longest = tuple(max(len(tokenizer.encode(pair[side])) + 1 for pair in pairs) for side, tokenizer in
                    enumerate((source, target)))
    assert longest == LONGEST.get(name, longest)
    assert max(longest) <= config.max_length
    for side, tokenizer in enumerate((source, target)):
        for pair in get_task(name).pairs("test", 500, 1):
            assert tokenizer.decode(tokenizer.encode(pair[side])) == pair[side]


@pytest.mark.parametrize("name", TASKS)
def test_the_recipe_trains(name, tmp_path):
    """Its model and its options go together: two updates of it, validated."""
    recipe, train_pairs, valid_pairs, tokenizers = prepared(name)
    options = replace(recipe.options, steps=2, epochs=None, batch_tokens=100, valid_sentences=1)
    trainer = Trainer(tmp_path, Run(recipe.config(*tokenizers), *tokenizers, {}, options.to_json()), train_pairs,
                      valid_pairs[:1], "cpu")
    trainer.log.start()
    fit(trainer, show_progress=False)
    assert [row["step"] for row in trainer.log.rows()] == ["2"]


def test_the_recipe_for_text():
    recipe = RECIPES["text"]
    tokenizers = build_tokenizers("words", *zip(*runs.PAIRS, strict=True), shared=False)
    config = recipe.config(*tokenizers)
    assert config.tie_output
    assert recipe.options.valid_metric == "bleu"
    assert Transformer(config).num_parameters() > 0


def test_changes_go_before_the_recipe_and_the_recipe_before_the_preset():
    _, _, _, tokenizers = prepared("addition", 20)
    recipe = replace(RECIPES["addition"], preset="tiny", model={"d_ff": 40, "dropout": 0.3})
    sizes = [len(tokenizer.vocabulary) for tokenizer in tokenizers]
    assert recipe.config(*tokenizers, dropout=0.5) == TransformerConfig.tiny(*sizes, d_ff=40, dropout=0.5)
