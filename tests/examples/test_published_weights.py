"""The examples with published weights: what they compute from small weights by the same names, and that they run.

tests/reference/published.safetensors has what PyTorch computes from these weights, by formulas of its own.
"""

import runpy
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import minigrad
from minigrad import Tensor
from minigrad.checkpoint import load_tensors, save_tensors

from tests.reference import make_published as published
from transformer import LanguageModel
from transformer.interop import load_pytorch, to_pytorch

tokenizers = pytest.importorskip("tokenizers")
EXAMPLES = Path(__file__).parents[2] / "examples"
REFERENCE, _ = load_tensors(published.FILE)
SIZES = {"d_model": published.D, "num_heads": published.HEADS, "num_layers": published.LAYERS,
         "max_length": published.LENGTH, "vocab_size": published.WORDS}


def gpt2(example):
    model = LanguageModel(**SIZES, activation="gelu_tanh", dropout=0.0)
    return model, lambda: model(published.IDS)


def bert(example):
    def outputs():
        tokens, texts = model(published.IDS, published.SEGMENTS)
        return minigrad.concatenate([tokens, texts[:, None]], 1)

    model = example["Bert"](**SIZES, d_ff=3 * published.D)
    return model, outputs


def whisper(example):
    model = example["Whisper"](**SIZES, d_ff=3 * published.D, mels=3, frames=published.LENGTH)
    return model, lambda: model(model.encode(Tensor(published.SOUND)), published.IDS)


CASES = {"gpt2": (gpt2, "", {"h.0.attn.bias": np.ones((1, 1, 7, 7))}),
         "bert": (bert, "bert", {"cls.predictions.bias": np.ones(11), "bert.embeddings.position_ids": np.arange(7)}),
         "whisper": (whisper, "model", {"proj_out.weight": np.ones((11, 8))})}


def weights_of(case):
    return published.draw(published.SHAPES[case](), list(published.SHAPES).index(case))


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_every_gradient_are_those_of_the_formulas(case, tmp_path):
    build, prefix, more = CASES[case]
    example = runpy.run_path(str(EXAMPLES / f"{case}.py"))
    model, outputs = build(example)
    weights = weights_of(case)
    save_tensors(tmp_path / "file", weights | more)
    load_pytorch(model.to(dtype=np.float64).eval(), tmp_path / "file", prefix, rename=example["NAMES"])
    found = outputs()
    (found * Tensor(published.cotangents(found.shape)[0])).sum().backward()
    np.testing.assert_allclose(found.numpy(), REFERENCE[f"{case}.output"], rtol=0, atol=1e-13)
    gradients = to_pytorch(model, prefix, rename=example["NAMES"], gradients=True)
    assert gradients.keys() == weights.keys() - {"model.encoder.embed_positions.weight"}  # a buffer here
    for name, gradient in gradients.items():
        expected = REFERENCE[f"{case}.gradient.{name}"]
        np.testing.assert_allclose(published.measured(gradient.numpy()), expected, rtol=1e-11, atol=1e-11, err_msg=name)
    back = to_pytorch(model, prefix, rename=example["NAMES"])
    assert back.keys() == weights.keys()
    assert all(np.array_equal(back[name].numpy(), array) for name, array in weights.items())


def run(case, changed, weights, last, tmp_path):
    """The example as a command with small weights, a tokenizer of eleven words, and other values of its names."""
    words = {word: i for i, word in enumerate(["[PAD]", "it", "rains", "is", "wet", "a", "b", "c", "d", "e", "f"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    save_tensors(tmp_path / "weights", {name: array.astype(np.float32) for name, array in weights.items()})
    main = runpy.run_path(str(EXAMPLES / f"{case}.py"))["main"]
    for name, value in changed.items():
        main.__globals__[name] = value(main.__globals__[name]) if callable(value) else value
    main(str(tmp_path / "weights"), str(tmp_path / "tokenizer.json"), *last)


def test_gpt2_writes_on(tmp_path, capsys):
    weights = weights_of("gpt2") | {"wpe.weight": np.zeros((50, published.D))}
    run("gpt2", {"SIZES": {**SIZES, "max_length": 50}}, weights, ["it rains "], tmp_path)
    text = capsys.readouterr().out.split()
    assert text[:2] == ["it", "rains"]
    assert len(text) == 42


def test_bert_compares_texts(tmp_path, capsys):
    """By the names of the published file, in which a norm has gamma and beta."""
    weights = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
               for name, array in weights_of("bert").items()}
    small = {"Bert": lambda model: partial(model, **SIZES, d_ff=3 * published.D)}
    run("bert", small, weights, ["it rains", "it is wet", "it rains"], tmp_path)
    found = np.array(capsys.readouterr().out.replace("[", "").replace("]", "").split(), float).reshape(3, 3)
    np.testing.assert_allclose(found[[0, 0, 1], [0, 2, 1]], 1, rtol=1e-6)
    assert found[0, 1] < 0.999


def test_whisper_writes_down(tmp_path, capsys):
    np.save(tmp_path / "sound.npy", published.SOUND[0].astype(np.float32))
    weights = weights_of("whisper") | {"model.decoder.embed_positions.weight": np.zeros((50, published.D))}
    sizes = {**SIZES, "max_length": 50, "d_ff": 3 * published.D, "mels": 3, "frames": published.LENGTH}
    changed = {"Whisper": lambda model: partial(model, **sizes), "START": (1, 2), "END": -1}
    run("whisper", changed, weights, [str(tmp_path / "sound.npy")], tmp_path)
    assert capsys.readouterr().out.startswith("it rains ")


def test_the_reference_arrays_are_made_again():
    pytest.importorskip("torch")
    for name, array in published.reference().items():
        np.testing.assert_allclose(REFERENCE[name], array, rtol=1e-11, atol=1e-12, err_msg=name)
