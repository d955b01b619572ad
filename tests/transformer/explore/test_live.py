"""The live model of a page: all of the model, lossless; and none where the page would compute something else."""


import numpy as np
import pytest

from minigrad import nn

from tests.transformer.explore.test_data import decoded
from tests.transformer.explore.test_page import data_of
from tests.transformer.tiny import VOCABULARY, tiny_model
from transformer import Transformer, TransformerConfig
from transformer.data import BytePairTokenizer, CharacterTokenizer, WordTokenizer
from transformer.explore.live import BYTES_PER_NUMBER
from transformer.explore.translation import explain
from transformer.translator import Translator

WORDS = WordTokenizer.train(["a b c d e f g"])  # the eleven tokens of `tiny_config`
CROSS = "decoder.layers.0.cross_attention"


def translator_of(model):
    return Translator(model, WORDS, WORDS)


def data_for(translator, source="a b", target="c d"):
    explanation = explain(translator, source, target)
    explanation.again = None  # no finite differences, which take long
    return decoded(data_of(explanation.page().html))


def without_live_model(model):
    """Why the page of the model has none."""
    data = data_for(translator_of(model))
    assert data["model"] is None
    assert all(entry["x"] is not None for entry in data["attentions"])
    return data["notLive"]


@pytest.mark.parametrize("options", [{}, {"share_embeddings": True, "tie_output": True, "positions": "learned"}])
def test_the_page_has_the_whole_model(options):
    """From its JSON alone the same model can be built; a tied parameter is there once."""
    model = tiny_model(dtype=np.float32, **options)
    data = data_for(translator_of(model), ["a b c", "d"], ["e", "f g"])
    live = data["model"]
    anew = Transformer(TransformerConfig.from_json(live["config"]))
    own = dict(anew.named_parameters())
    assert own.keys() == live["parameters"].keys()
    for name, parameter in own.items():
        assert live["parameters"][name].dtype == np.float32
        parameter.copy_(live["parameters"][name])
    assert live["tokenizers"]["source"] == {"kind": "words", "tokens": list(WORDS.vocabulary.tokens)}
    pairs = list(zip(live["texts"]["source"], live["texts"]["target"], strict=True))
    assert translator_of(anew).loss(pairs) == pytest.approx(data["loss"], rel=1e-5)
    assert live["ids"] == {"source": [[*WORDS.encode(text), 2] for text, _ in pairs],
                           "target": [[*WORDS.encode(text), 2] for _, text in pairs]}
    assert data["notLive"] is None


def test_the_ids_are_those_that_the_model_wrote():
    """A byte-pair tokenizer may encode the text of a translation otherwise."""
    tokenizer = BytePairTokenizer.train(["ab"], 261)
    model = Transformer(TransformerConfig(VOCABULARY, 261, d_model=8, num_heads=2, d_ff=8))
    a, b = (tokenizer.vocabulary.id_of(letter) for letter in "ab")
    translator = Translator(model, WORDS, tokenizer)
    translator.translate = lambda sources: [[type("Found", (), {"ids": [a, b]})] for _ in sources]
    live = data_for(translator, target=None)["model"]
    assert (live["texts"]["target"], live["ids"]["target"]) == (["ab"], [[a, b, 2]])
    assert tokenizer.encode("ab") != [a, b]


def test_a_model_that_does_not_fit():
    """The page of its attentions, within the limit of such a page."""
    explanation = explain(translator_of(tiny_model()), "a b", "c d")
    size = len(explanation.page().html.encode())
    fitting, small = explanation.page(limit=size + 50_000), explanation.page(limit=size - 1)
    assert data_of(fitting.html)["model"] is not None
    data = data_of(small.html)
    assert data["model"] is None
    assert "parameters" in data["notLive"]
    assert data["attentions"][0]["x"] is not None
    large = explain(translator_of(tiny_model(d_model=256, d_ff=1024)), "a b", "c d")
    large.again = None
    assert large.live.model.num_parameters() * BYTES_PER_NUMBER > 3_000_000
    assert data_of(large.page([CROSS]).html)["model"] is None


def changed(change):
    model = tiny_model()
    change(model)
    return model


# Models whose modules are all of `transformer.model`, and which still are not what their configurations say.
CHANGES = {
    "epsilon": lambda model: setattr(model.decoder.norm, "eps", 1e-3),
    "heads": lambda model: setattr(model.decoder.layers[0].cross_attention, "num_heads", 4),
    "scale": lambda model: setattr(model.encoder.embedding, "scale", 1.0),
    "norm": lambda model: setattr(model.decoder.layers[0].feed_forward_residual, "pre", False),
    "layer": lambda model: setattr(model.encoder, "layers", nn.ModuleList([])),
    "shared": lambda model: setattr(model.projection, "weight", model.decoder.embedding.table.weight),
    "frozen": lambda model: model.projection.requires_grad_(False),
    "gradient": lambda model: model.projection.register_full_backward_hook(lambda module, given, arriving: None),
    "forward": lambda model: setattr(model.encoder.layers[0], "forward", lambda x, mask: x),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_model_is_not_live(change):
    assert without_live_model(changed(CHANGES[change]))


def test_a_tokenizer_of_another_kind_is_not_live():
    class Spelling(CharacterTokenizer):
        """A subclass may split as it likes."""

    trained = BytePairTokenizer.train(["ab ab"], 261)
    model = Transformer(TransformerConfig(len(trained.vocabulary), VOCABULARY, d_model=8, num_heads=2, d_ff=8))
    assert data_for(Translator(model, trained, WORDS))["model"] is not None
    data = data_for(Translator(model, Spelling.train(["abc"]), WORDS))
    assert data["model"] is None
    assert "Spelling" in data["notLive"]
