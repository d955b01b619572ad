"""The examples with published weights: what they compute from small weights by the same names, and that they run.

tests/reference/published.safetensors has what PyTorch computes from these weights, by formulas of its own.
"""

import ast
import runpy
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import minigrad
from minigrad import Tensor
from minigrad.checkpoint import load_tensors, save_tensors

from tests.reference import make_published as published
from transformer import LanguageModel
from transformer.interop import load_pytorch

tokenizers = pytest.importorskip("tokenizers")
EXAMPLES = Path(__file__).parents[2] / "examples"
REFERENCE, _ = load_tensors(published.FILE)
SIZES = {"d_model": published.D, "num_heads": published.HEADS, "num_layers": published.LAYERS,
         "vocab_size": published.WORDS}


def gpt2(example):
    model = LanguageModel(**SIZES, max_length=published.LENGTH, activation="gelu_tanh", dropout=0.0)
    return model, lambda: model(published.IDS)


def bert(example):
    def outputs():
        tokens, texts = model(published.IDS, published.SEGMENTS)
        return minigrad.concatenate([tokens, texts[:, None]], 1)

    model = example["Bert"](**SIZES, max_length=published.LENGTH, d_ff=3 * published.D)
    return model, outputs


def whisper(example):
    model = example["Whisper"](**SIZES, mels=3)
    return model, lambda: model.decoder(published.IDS, memory=model.encode(Tensor(published.SOUND)))


# The model and its output; what else a published file has; the prefix that only some files have.
CASES = {"gpt2": (gpt2, {"h.0.attn.bias": np.ones((1, 1, 7, 7))}, ""),
         "bert": (bert, {"cls.predictions.bias": np.ones(11), "bert.embeddings.position_ids": np.arange(7)}, "bert."),
         "whisper": (whisper, {"proj_out.weight": "model.decoder.embed_tokens.weight"}, "model.")}


def weights_of(case):
    return published.draw(published.SHAPES[case](), list(published.SHAPES).index(case))


@pytest.mark.parametrize("with_prefix", [True, False], ids=["published", "without prefix"])
@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_the_formulas_and_every_weight_can_be_trained(case, with_prefix, tmp_path):
    build, more, prefix = CASES[case]
    example = runpy.run_path(str(EXAMPLES / f"{case}.py"))
    model, outputs = build(example)
    weights = weights_of(case)
    state = weights | {name: weights[value] if isinstance(value, str) else value for name, value in more.items()}
    if not with_prefix:
        state = {name.removeprefix(prefix): array for name, array in state.items()}
    save_tensors(tmp_path / "file", state)
    state, _ = load_tensors(tmp_path / "file")
    turned = example.get("turned", dict)  # GPT-2's matrices
    load_pytorch(model.to(dtype=np.float64).eval(), turned(state), rename=example["rename"])
    found = outputs()
    np.testing.assert_allclose(found.numpy(), REFERENCE[case], rtol=0, atol=1e-13)
    (found ** 3).sum().backward()
    assert all((p.grad is not None) == p.requires_grad for p in model.parameters())


def bert_weights():
    """By the names of the published file, in which a norm has gamma and beta."""
    return {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
            for name, array in weights_of("bert").items()}


def gpt2_weights():
    """With a prefix that some files have, and fifty positions."""
    weights = weights_of("gpt2") | {"wpe.weight": np.zeros((50, published.D))}
    return {f"transformer.{name}": array for name, array in weights.items()} | {"lm_head.weight": weights["wte.weight"]}


def whisper_weights():
    """With a vocabulary of the published size, for the tokens at the start."""
    weights = weights_of("whisper")
    table = np.zeros((51865, published.D))
    table[:published.WORDS] = weights["model.decoder.embed_tokens.weight"]
    return weights | {"model.decoder.embed_tokens.weight": table}


def similarities(written):
    """A text equals itself, and differs from another."""
    found = np.array(written.replace("[", "").replace("]", "").split(), float).reshape(3, 3)
    return np.allclose(found[[0, 0, 1], [0, 2, 1]], 1, rtol=1e-6) and found[0, 1] < 0.999


WORDS = ["[PAD]", "it", "rains", "is", "wet", *"abcdef"]
# The weights, the values of other sizes, the arguments after the tokenizer, and what is right to print.
COMMANDS = {
    "gpt2": (gpt2_weights, {"SIZES": lambda _: {**SIZES, "max_length": 50}}, ["it rains "],
             lambda text: text.split()[:2] == ["it", "rains"] and len(text.split()) == 42),
    "bert": (bert_weights,
             {"Bert": lambda model: partial(model, **SIZES, max_length=published.LENGTH, d_ff=3 * published.D)},
             ["it rains", "it is wet", "it rains"], similarities),
    "whisper": (whisper_weights, {"Whisper": lambda model: partial(model, **{**SIZES, "vocab_size": 51865}, mels=3)},
                ["sound.npy"], lambda text: len(text.split()) == 40 and set(text.split()) <= set(WORDS[1:])),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_the_example_as_a_command(case, tmp_path, monkeypatch, capsys):
    """With small weights, a tokenizer of eleven words, and other values of its names."""
    weights, changed, last, right = COMMANDS[case]
    monkeypatch.chdir(tmp_path)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)},
                                                                 unk_token="[PAD]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save("tokenizer.json")
    np.save("sound.npy", published.SOUND[0].astype(np.float32))
    save_tensors("weights", {name: array.astype(np.float32) for name, array in weights().items()})
    monkeypatch.setattr(sys, "argv", [case, "weights", "tokenizer.json", *last])
    path = EXAMPLES / f"{case}.py"
    example = runpy.run_path(str(path))
    example |= {name: change(example[name]) for name, change in changed.items()}
    as_command = ast.parse(path.read_text(encoding="utf-8")).body[-1]
    assert ast.unparse(as_command.test) == "__name__ == '__main__'"
    exec(compile(ast.Module(as_command.body, []), path, "exec"), example)
    assert right(capsys.readouterr().out)


def test_the_reference_arrays_are_made_again():
    pytest.importorskip("torch")
    for name, array in published.reference().items():
        np.testing.assert_allclose(REFERENCE[name], array, rtol=1e-11, atol=1e-12, err_msg=name)
