"""Our modules compute what PyTorch's do: outputs and every gradient, against arrays that PyTorch made.

The arrays are in tests/reference/pytorch.safetensors, beside the script that makes them; test_pytorch_live.py compares
with PyTorch itself, where it is installed.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from minigrad.checkpoint import load_tensors

from tests.transformer.pytorch_cases import build, largest_difference, measure, names
from transformer.interop import load_pytorch, to_pytorch

ARRAYS, METADATA = load_tensors(Path(__file__).parents[1] / "reference" / "pytorch.safetensors")
FACTS = {key: json.loads(text) for key, text in METADATA.items()}
SIZES, CASES = FACTS["sizes"], FACTS["cases"]
TOLERANCE = {np.float32: 5e-5, np.float64: 1e-10}  # devices round differently, which a norm of six features magnifies


def part(prefix):
    """The arrays whose names begin so, by the rest of their names."""
    return {name[len(prefix):]: array for name, array in ARRAYS.items() if name.startswith(prefix)}


def inputs_of(case):
    inputs = part("inputs.")
    wide = {name: inputs.pop(f"wide_{name}") for name in ("key", "value")}
    return {**inputs, **wide} if case == "attention_wide" else inputs


def weights_of(case):
    """PyTorch's state_dict of the case's module: those of the whole model's weights that the case has gradients for."""
    return {name: ARRAYS[f"weights.{CASES[case][1]}{name}"] for name in part(f"{case}.gradient.")}


def loaded(case, weights, dtype=np.float64, device="cpu"):
    kind, _, options = CASES[case]
    module = build(kind, options, SIZES, dtype, device)
    load_pytorch(module, {name: array.astype(dtype) for name, array in weights.items()}, names=names(kind))
    return module


def difference(case, module):
    return largest_difference(measure(CASES[case][0], module, inputs_of(case)), part(f"{case}."))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_outputs_and_every_gradient_are_pytorchs(case, dtype, device):
    module = loaded(case, weights_of(case), dtype, device)
    assert difference(case, module) < (TOLERANCE[dtype], "")


@pytest.mark.parametrize("case", CASES)
def test_every_parameter_is_compared(case):
    kind, _, options = CASES[case]
    covered = {name: ARRAYS[f"{case}.gradient.{name}"].shape for name in weights_of(case)}
    assert sum(np.prod(shape) for shape in covered.values()) == sum(
        parameter.size for name, parameter in build(kind, options, SIZES).named_parameters()
        if kind != "transformer" or ".layers." in name or name.endswith(("coder.norm.weight", "coder.norm.bias")))
    assert all(abs(ARRAYS[f"{case}.gradient.{name}"]).max() > 1e-3 for name in covered)
    assert CASES[case][2]["bias"] == any("bias" in name for name in covered if "generator" not in name)


def test_the_batch_has_sentences_of_unequal_lengths():
    source, target = ((ARRAYS[f"inputs.{side}_ids"] != 0).sum(axis=1).tolist() for side in ("source", "target"))
    assert (source, target) == ([4, 2], [1, 3])


def test_the_weights_come_back_bit_for_bit():
    for case in CASES:
        weights = weights_of(case)
        module = loaded(case, weights)
        found = to_pytorch(module, names=names(CASES[case][0]))
        assert found.keys() == weights.keys()
        assert all(np.array_equal(found[name].numpy(), array) for name, array in weights.items())


# --- Each of these mistakes is found ------------------------------------------------------------------------


def swap_blocks(name, i, j):
    """Exchange two of the three blocks of a packed tensor."""
    def change(weights):
        blocks = np.split(weights[name], 3)
        blocks[i], blocks[j] = blocks[j], blocks[i]
        weights[name] = np.concatenate(blocks)
    return change


def transpose(name):
    def change(weights):
        weights[name] = weights[name].T
    return change


def exchange(one, other):
    """Exchange the weights of two parts."""
    def change(weights):
        for name in [name for name in weights if name.startswith(one)]:
            twin = other + name[len(one):]
            weights[name], weights[twin] = weights[twin], weights[name]
    return change


def transpose_block(name, i):
    def change(weights):
        blocks = np.split(weights[name], 3)
        blocks[i] = blocks[i].T
        weights[name] = np.concatenate(blocks)
    return change


MISTAKES = {
    "swap_q_and_k": ("attention", swap_blocks("in_proj_weight", 0, 1)),
    "swap_k_and_v": ("attention", swap_blocks("in_proj_weight", 1, 2)),
    "swap_q_and_v_biases": ("attention", swap_blocks("in_proj_bias", 0, 2)),
    "transpose_out_proj": ("attention_no_bias", transpose("out_proj.weight")),
    "transpose_v": ("attention_no_bias", transpose_block("in_proj_weight", 2)),
    "transpose_q_proj": ("attention_wide", transpose("q_proj_weight")),
    "swap_encoder_norms": ("encoder_layer", exchange("norm1.", "norm2.")),
    "swap_decoder_norms": ("decoder_layer", exchange("norm1.", "norm2.")),
    "swap_last_decoder_norms": ("decoder_layer", exchange("norm2.", "norm3.")),
    "swap_attentions": ("decoder_layer", exchange("self_attn.", "multihead_attn.")),
    "swap_final_norms": ("post_relu", exchange("encoder.norm.", "decoder.norm.")),
    "swap_norms_inside": ("pre_gelu_no_bias", exchange("decoder.layers.0.norm1.", "decoder.layers.0.norm3.")),
    "swap_layers": ("model", exchange("transformer.encoder.layers.0.", "transformer.encoder.layers.1.")),
    "swap_positions": ("model", exchange("source_positions.", "target_positions.")),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_mapping_is_found(mistake):
    case, change = MISTAKES[mistake]
    weights = weights_of(case)
    change(weights)
    assert difference(case, loaded(case, weights)) > (0.1, "")


@pytest.mark.parametrize(("case", "change"), [
    ("post_relu", {"norm_first": True}), ("pre_gelu_no_bias", {"norm_first": False}),
    ("post_gelu_no_bias", {"activation": "gelu_tanh"}), ("pre_gelu_no_bias", {"activation": "relu"}),
    ("post_gelu_no_bias", {"eps": 1e-5}),
])
def test_another_option_than_pytorchs_is_found(case, change):
    """What the state_dict does not tell has to be right, too."""
    kind, _, options = CASES[case]
    module = build(kind, {**options, **change}, SIZES)
    load_pytorch(module, weights_of(case), names=names(kind))
    assert difference(case, module) > (1e-4, "")
