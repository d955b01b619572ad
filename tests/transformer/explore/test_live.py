"""The live model of a page: all of the model, lossless; and none where the page would compute something else."""

import re

import pytest

from minigrad import nn

from tests.explorer.pages import WORDS, live_explanation
from tests.transformer.tiny import VOCABULARY, tiny_model
from transformer import Transformer, TransformerConfig
from transformer.data import BytePairTokenizer, CharacterTokenizer
from transformer.explore.translation import explain
from transformer.translator import Translator


def test_the_ids_are_those_that_the_model_wrote():
    """A byte-pair tokenizer may encode the text of a translation otherwise."""
    tokenizer = BytePairTokenizer.train(["ab"], 261)
    model = Transformer(TransformerConfig(VOCABULARY, 261, d_model=8, num_heads=2, d_ff=8))
    a, b = (tokenizer.vocabulary.id_of(letter) for letter in "ab")
    translator = Translator(model, WORDS, tokenizer)
    translator.translate = lambda sources: [[type("Found", (), {"ids": [a, b]})] for _ in sources]
    live = explain(translator, "a b").live
    assert (live["texts"]["target"], live["ids"]["target"]) == (["ab"], [[a, b, 2]])
    assert tokenizer.encode("ab") != [a, b]


def test_a_model_that_does_not_fit():
    large = explain(Translator(tiny_model(d_model=256, d_ff=1024), WORDS, WORDS), "a", "b", limit=3)
    assert re.fullmatch(r"its [\d,]+ parameters do not fit into a page of 3 MB \(--limit\)", large.live)


# Models whose modules are all of `transformer.model`, and which still are not what their configurations say.
CHANGES = {
    "epsilon": lambda model: setattr(model.decoder.norm, "eps", 1e-3),
    "layer": lambda model: setattr(model.encoder, "layers", nn.ModuleList([])),
    "shared": lambda model: setattr(model.projection, "weight", model.decoder.embedding.table.weight),
    "frozen": lambda model: model.projection.requires_grad_(False),
    "gradient": lambda model: model.projection.register_full_backward_hook(lambda _, given, arriving: (2 * given[0],)),
    "forward": lambda model: setattr(model.encoder.layers[0], "forward", lambda x, mask: x),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_model_is_not_live(change):
    model = tiny_model()
    CHANGES[change](model)
    explanation = live_explanation(model)
    assert isinstance(explanation.live, str)
    assert explanation._repr_html_() is None


def test_a_tokenizer_of_another_kind_is_not_live():
    class Spelling(CharacterTokenizer):
        """A subclass may split as it likes."""

    assert "Spelling" in explain(Translator(tiny_model(), Spelling.train(["abc"]), WORDS), "a b", "c d").live
