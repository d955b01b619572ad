"""Our modules against PyTorch itself, where it is installed: more options and sizes than the recorded arrays have."""

import dataclasses
import itertools
import re
import wave
from pathlib import Path

import numpy as np
import pytest

from minigrad.checkpoint import load_tensors

from tests.transformer.pytorch_cases import build, largest_difference, measure, names
from transformer import Transformer, TransformerConfig
from transformer.interop import load_pytorch, pytorch_names, save_pytorch, to_pytorch

torch = pytest.importorskip("torch")
reference = pytest.importorskip("tests.reference.make_pytorch")
safetensors_torch = pytest.importorskip("safetensors.torch")

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
NUMPY = {torch.float32: np.float32, torch.float64: np.float64}
SIZES = {"d_model": 15, "num_heads": 3, "d_ff": 11, "source_vocab_size": 13, "target_vocab_size": 9, "max_length": 7}
OPTIONS = [{"norm_first": norm_first, "activation": activation, "bias": bias, "num_layers": 2, "eps": 1e-4}
           for norm_first, activation, bias in itertools.product((False, True), ("relu", "gelu"), (True, False))]
STACKS = ["encoder_layer", "decoder_layer", "encoder", "decoder", "transformer", "model"]


def described(options):
    return "-".join(["pre" if options["norm_first"] else "post", options["activation"],
                     "bias" if options["bias"] else "no_bias"])


def both(kind, options, sizes=SIZES, dtype=torch.float64):
    """PyTorch's module, with new weights, and ours with the same ones."""
    options = {**reference.DEFAULTS, **options}
    theirs = reference.build(kind, options, sizes, dtype)
    reference.draw_weights(np.random.default_rng(3), theirs)
    ours = build(kind, options, sizes, NUMPY[dtype])
    load_pytorch(ours, theirs.state_dict(), names=names(kind))
    return theirs, ours


def inputs(sizes=SIZES):
    return reference.draw_inputs(np.random.default_rng(4), sizes, (5, 2, 7), (3, 6, 1))


def assert_agree(kind, theirs, ours, sizes=SIZES):
    expected = reference.measure(kind, theirs, inputs(sizes))
    dtype = next(theirs.parameters()).dtype
    assert largest_difference(measure(kind, ours, inputs(sizes)), expected) < (TOLERANCE[dtype], "")


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=described)
@pytest.mark.parametrize("kind", STACKS)
def test_outputs_and_every_gradient(kind, options):
    assert_agree(kind, *both(kind, options))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_outputs_and_every_gradient_of_a_whole_model(dtype):
    assert_agree("model", *both("model", OPTIONS[-1], dtype=dtype))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("widths", [{}, {"kdim": 4}, {"vdim": 6}, {"kdim": 7, "vdim": 1}], ids=str)
def test_attention(widths, bias):
    sizes = {**SIZES, **widths}
    assert_agree("attention", *both("attention", {**widths, "bias": bias}, sizes), sizes)


@pytest.mark.parametrize("kind", ["attention", *STACKS])
def test_names_and_order_are_those_of_the_state_dict(kind):
    theirs, ours = both(kind, {})
    found = [pair.theirs for pair in pytorch_names(ours, names=names(kind))]
    expected = list(theirs.state_dict())
    assert found == expected if kind != "model" else sorted(found) == sorted(expected)  # its class has its own order


def test_the_reference_arrays_are_made_again():
    arrays, facts = reference.reference()
    recorded, _ = load_tensors(reference.FILE)
    assert recorded.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_allclose(recorded[name], array, rtol=0, atol=1e-13, err_msg=name)
    assert facts["seed"] == reference.SEED


def tied():
    """PyTorch's model whose generator, without bias, and both embeddings are one tensor; and ours."""
    sizes = {**SIZES, "source_vocab_size": 9}
    theirs = reference.build("model", {}, sizes, torch.float64)
    theirs.generator = torch.nn.Linear(sizes["d_model"], 9, bias=False, dtype=torch.float64)
    theirs.generator.weight = theirs.source_embedding.weight = theirs.target_embedding.weight
    reference.load(theirs, {name: np.random.default_rng(len(name)).normal(size=tuple(p.shape))
                            for name, p in theirs.state_dict().items()})
    config = TransformerConfig(9, 9, d_model=15, num_heads=3, num_encoder_layers=1, num_decoder_layers=1, d_ff=11,
                               dropout=0.0, norm="post", final_norm=True, positions="learned", max_length=7,
                               tie_output=True, share_embeddings=True)
    return theirs, Transformer(config).to(dtype=np.float64)


def test_tied_weights_of_a_file(tmp_path):
    """PyTorch's save_model leaves all names but one out; ours has them all, as load_state_dict wants."""
    theirs, ours = tied()
    safetensors_torch.save_model(theirs, str(tmp_path / "theirs.safetensors"))
    written, _ = load_tensors(tmp_path / "theirs.safetensors")
    assert len(written) == len(theirs.state_dict()) - 2
    load_pytorch(ours, tmp_path / "theirs.safetensors")
    found = to_pytorch(ours)
    expected = theirs.state_dict()
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name].numpy(), value.numpy()) for name, value in expected.items())
    save_pytorch(tmp_path / "ours.safetensors", ours)
    theirs.load_state_dict(safetensors_torch.load_file(tmp_path / "ours.safetensors"))
    assert theirs.generator.weight is theirs.source_embedding.weight

    config = dataclasses.replace(ours.config, tie_output=False, share_embeddings=False)
    apart = Transformer(config).to(dtype=np.float64)
    load_pytorch(apart, tmp_path / "theirs.safetensors")
    assert np.array_equal(apart.projection.weight.numpy(), theirs.generator.weight.detach().numpy())


PAGE = Path(__file__).parents[2] / "docs" / "pytorch_weights.md"


def test_the_pages_examples_with_pytorch_run(tmp_path, monkeypatch):
    """Its blocks marked py, one after the other: from PyTorch to here and back, from a recording to features."""
    monkeypatch.chdir(tmp_path)
    with wave.open("speech.wav", "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", None))
        file.writeframes(np.arange(16000, dtype=np.int16).tobytes())
    namespace = {}
    for kind, block in re.findall(r"^```(py|python)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.DOTALL):
        if kind == "py" or "def log_mel" in block:
            exec(block, namespace)
    assert np.load("log_mel.npy").shape == (80, 3000)
