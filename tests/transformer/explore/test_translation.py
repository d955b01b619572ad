"""``explain``: the numbers of a trained model's translation, in float64, and of its checkpoints."""

import shutil

import numpy as np
import pytest

import minigrad as mg

from tests.transformer import runs
from tests.transformer.digits import PAIRS
from tests.transformer.explore.test_page import data_of
from transformer.explore import history
from transformer.explore.history import backward_pass, double
from transformer.explore.translation import cross_entropy_near_zero, explain
from transformer.training.run_folder import numbered
from transformer.translator import Translator

CROSS = "decoder.layers.0.cross_attention"


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with numbered checkpoints, and one that Ctrl-C left."""
    folder = tmp_path_factory.mktemp("history") / "run"
    runs.run(folder, keep=3)
    newest = folder / "checkpoints" / numbered(folder)[-1]
    newest.with_name(f"{newest.name}-interrupted").mkdir()
    return folder


@pytest.mark.parametrize(("source", "target"), [
    ("three one", None), ("three one", "一 三"), (["two", "one two three"], None),
    (["two", "one two three"], ["二 二", "三"])])
def test_the_loss_is_that_of_the_translator(translator, source, target):
    """Per target token, of the model's own translation unless another is given."""
    explanation = explain(translator, source, target)
    sources = [source] if isinstance(source, str) else source
    targets = [target] if isinstance(target, str) else target or [dict(PAIRS)[text] for text in sources]
    pairs = list(zip(sources, targets, strict=True))
    assert explanation.loss == pytest.approx(translator.loss(pairs), rel=1e-4, abs=1e-6)  # computed in float32
    assert explanation.again().item() == pytest.approx(explanation.loss, rel=1e-9)
    assert explanation.title == "; ".join(f"{left} → {right}" for left, right in pairs)
    width = max(len(text.split()) for text in targets) + 1
    for item, (left, right) in enumerate(pairs):
        written = [*right.split(), "<eos>"]
        assert explanation.tokens.source[item][:len(left.split()) + 1] == [*left.split(), "<eos>"]
        assert explanation.tokens.target[item] == ["<bos>", *written, *["<pad>"] * width][:width]
        assert explanation.tokens.following[item] == [*written, *["<pad>"] * width][:width]


def test_every_gradient_is_right(translator):
    """Though the model is nearly sure, so that its gradients are small, and has others left from training."""
    model = translator.model
    model.loss(np.array([[4, 5, 2]]), np.array([[6, 6, 2]])).backward()
    explanation = explain(translator, ["one two three", "two"])
    assert model.projection.weight.grad is not None  # the translator is not changed
    model.zero_grad()
    assert explanation.loss < 0.05
    assert len(explanation.names) == 3
    for name in explanation.names:
        errors = [check.error for found in explanation.checks(name).values() for check in found]
        assert max(errors) < 1e-6
        assert np.median(errors) < 1e-8


def test_the_loss_in_another_form_keeps_its_digits(translator):
    """Of logits so far apart that the usual form has none left."""
    model = double(translator.model)
    weight = model.projection.weight
    weight.copy_(weight.numpy() * 4)
    source, labels = np.array([[4, 5, 2], [6, 2, 0]]), np.array([[4, 5, 2], [6, 2, 0]])
    logits = model(source, np.array([[1, 4, 5], [1, 6, 2]])).numpy().astype(np.longdouble)
    shifted = logits - np.take_along_axis(logits, labels[..., None], -1)
    others = np.exp(shifted).sum(-1) - 1
    expected = float(np.log1p(others)[labels != 0].sum() / 5)
    assert cross_entropy_near_zero(model, source, labels).item() == pytest.approx(expected, rel=1e-9)
    assert model.loss(source, labels).item() == pytest.approx(expected, abs=1e-15)


def test_the_translator_is_left_alone(run):
    """Its weights stay in float32, in training, without gradients; and no random number is drawn."""
    translator = Translator.load(run)
    translator.model.train()
    mg.manual_seed(3)
    state = mg.random.get_state()
    explain(translator, "one").checks(CROSS)
    assert mg.random.get_state() == state
    assert translator.model.training
    assert all(parameter.dtype == np.float32 and parameter.grad is None for parameter in translator.model.parameters())


def test_the_page_holds_the_numbers_of_the_model(translator, tmp_path):
    explanation = explain(translator, "two three")
    explanation.to_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = data_of(text)
    assert data["title"] == "two three → 二 三"
    assert [entry["name"] for entry in data["attentions"]] == explanation.names
    for entry in data["attentions"]:
        assert entry["checks"] == {symbol: [check._asdict() for check in found]
                                   for symbol, found in explanation.checks(entry["name"]).items()}
    assert len(text.encode()) < 2_000_000
    for private in (str(tmp_path), str(tmp_path.parent.parent), "/home/", "/root/", "/tmp/"):
        assert private not in text


def test_history(trained):
    """Each numbered checkpoint reads the sentence and the same translation."""
    translator = Translator.load(trained, which="latest")
    source, target = runs.PAIRS[0]
    explanation = explain(translator, source, target, trained)
    names = numbered(trained)
    assert len(names) == 3
    assert [snapshot.step for snapshot in explanation.history] == [int(name) for name in names]
    for name, snapshot in zip(names, explanation.history, strict=True):
        model = Translator.load(trained, which=name).model
        source_ids, labels = ([[*tokenizer.encode(text), 2]] for tokenizer, text in zip(
            runs.TOKENIZERS, (source, target), strict=True))
        traced, _ = backward_pass(double(model), source_ids, labels)
        assert snapshot.weights.keys() == snapshot.gradients.keys() == set(traced.names)
        np.testing.assert_allclose(snapshot.weights[CROSS], traced[CROSS].weights.numpy(), rtol=1e-6)
        np.testing.assert_allclose(snapshot.gradients[CROSS], traced[CROSS].gradient("scaled").numpy(), atol=1e-8)
    last = explanation.trace[CROSS]
    np.testing.assert_array_equal(explanation.history[-1].weights[CROSS], last.weights.numpy().astype(np.float32))


def test_a_damaged_checkpoint_is_named_and_left_out(trained, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    first, *others = numbered(folder)
    (folder / "checkpoints" / first / "model.safetensors").write_bytes(b"no")
    explanation = explain(Translator.load(folder), runs.PAIRS[0][0], folder=folder)
    assert [snapshot.step for snapshot in explanation.history] == [int(name) for name in others]
    [note] = capsys.readouterr().err.splitlines()
    assert note.startswith("note: ")
    assert first in note


def test_a_checkpoint_that_the_training_deletes_meanwhile_is_left_out(trained, monkeypatch):
    names = numbered(trained)
    monkeypatch.setattr(history, "numbered", lambda folder: ["00000001", *names])
    explanation = explain(Translator.load(trained), runs.PAIRS[0][0], folder=trained)
    assert [snapshot.step for snapshot in explanation.history] == [int(name) for name in names]


@pytest.mark.parametrize(("token", "times"), [(2, 0), (4, 7)])
def test_a_model_that_writes_one_token_for_ever(translator, token, times):
    """Of nothing, the end is explained; what never ends is cut off where the model has no position left for the end."""
    stubborn = double(translator.model)
    norm, weight = stubborn.decoder.norm, stubborn.projection.weight
    norm.weight.copy_(np.zeros(32))
    norm.bias.copy_(np.ones(32))
    weight.copy_(np.where(np.arange(7)[:, None] == token, 1.0, np.zeros(32)))
    explanation = explain(Translator(stubborn, translator.source_tokenizer, translator.target_tokenizer), "one")
    written = translator.target_tokenizer.vocabulary.token_of(token)
    assert explanation.tokens.following == [[*[written] * times, "<eos>"]]


@pytest.mark.parametrize(("arguments", "side"), [
    (("",), "source"), (([],), "source"), (("one", ["一", "二"]), "target")])
def test_wrong_use(translator, arguments, side):
    with pytest.raises(ValueError, match=side):
        explain(translator, *arguments)


@pytest.mark.parametrize("arguments", [("one " * 8,), ("one", "一 " * 8)])
def test_too_long_and_just_not(translator, arguments):
    with pytest.raises(ValueError, match="a sequence of 9 tokens is longer than the model's 8"):
        explain(translator, *arguments)
    assert explain(translator, "one " * 7, "一 " * 7).trace[CROSS].scores.shape[-2:] == (8, 8)
