"""Our modules compute what PyTorch's do: outputs and every gradient, against arrays that PyTorch made.

The arrays are in tests/reference/pytorch.safetensors, beside the script that makes them.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from minigrad import Tensor
from minigrad.checkpoint import load_tensors
from minigrad.device import asarray_on, to_numpy

from transformer import MultiHeadAttention, Transformer, TransformerConfig, causal_mask, padding_mask
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


def build(kind, options):
    """Our module of a kind, with what stands for PyTorch's constructor arguments."""
    width, heads, bias = SIZES["d_model"], SIZES["num_heads"], options["bias"]
    if kind == "attention":
        return MultiHeadAttention(width, heads, bias=bias, kdim=options.get("kdim"), vdim=options.get("vdim"))
    return Transformer(TransformerConfig(
        SIZES["source_vocab_size"], SIZES["target_vocab_size"], d_model=width, num_heads=heads, d_ff=SIZES["d_ff"],
        num_encoder_layers=options["num_layers"], num_decoder_layers=options["num_layers"], dropout=0.0,
        norm="pre" if options["norm_first"] else "post", final_norm=True, activation=options["activation"],
        positions="learned", max_length=SIZES["max_length"], bias=bias, norm_bias=bias, output_bias=True,
        layer_norm_eps=options["eps"]))


AROUND = {
    "encoder.embedding.table": "source_embedding", "encoder.embedding.positions": "source_positions",
    "decoder.embedding.table": "target_embedding", "decoder.embedding.positions": "target_positions",
    "projection": "generator", "encoder": "transformer.encoder", "decoder": "transformer.decoder"}  # the longer first
HERE = {theirs: ours for ours, theirs in AROUND.items()}


def renamed(name, names):
    """Of a tensor of the whole model, which stands around PyTorch's ``nn.Transformer``."""
    return next((new + name.removeprefix(old) for old, new in names.items() if name.startswith(f"{old}.")), name)


def parts(kind, module):
    """The parts that PyTorch has, by their prefixes: of a bare ``nn.Transformer`` its stacks."""
    return {"encoder": module.encoder, "decoder": module.decoder} if kind == "transformer" else {"": module}


def cotangent(shape):
    """The gradient that arrives at an output, as in tests/reference/make_pytorch.py."""
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape)


def outputs(kind, module, floats, source_ids, target_ids):
    """What the module computes: Tensors by name."""
    if kind == "model":
        return {"output": module(source_ids, target_ids)}
    source, target, device = floats["source"], floats["target"], floats["source"].device
    padding = padding_mask(asarray_on(device, source_ids))
    if kind == "attention":
        past = asarray_on(device, np.tri(target.shape[1], floats["key"].shape[1], 1, dtype=bool))
        output, weights = module(target, floats["key"], floats["value"], padding & past, return_weights=True)
        return {"output": output, "weights": weights}
    there = asarray_on(device, target_ids)
    causal = causal_mask(target_ids.shape[1], device=device) & padding_mask(there)
    return {"output": module.decoder.transform(target, module.encoder.transform(source, padding), causal, padding)}


def measure(kind, module, inputs):
    """Outputs, and the gradients for all weights and inputs of ``sum(output * cotangent)``, as NumPy arrays."""
    first = next(module.parameters())
    floats = {name: Tensor(array.astype(first.dtype), device=first.device, requires_grad=True)
              for name, array in inputs.items() if array.dtype.kind == "f"}
    found = outputs(kind, module, floats, inputs["source_ids"], inputs["target_ids"])
    sum((out * Tensor(cotangent(out.shape).astype(out.dtype), device=out.device)).sum()
        for out in found.values()).backward()
    found |= {f"gradient.{renamed(name, AROUND) if kind == 'model' else name}": gradient
              for prefix, part in parts(kind, module).items()
              for name, gradient in to_pytorch(part, prefix, gradients=True).items()}
    found |= {f"input.{name}": x.grad for name, x in floats.items() if x.grad is not None}
    return {name: to_numpy(tensor.data) for name, tensor in found.items()}


@pytest.mark.parametrize(("case", "dtype"), [*((case, np.float64) for case in CASES), ("model", np.float32)])
def test_outputs_and_every_gradient_are_pytorchs(case, dtype, device):
    """Up to a part of the largest number of each array."""
    kind, prefix, options = CASES[case]
    module, expected = build(kind, options).to(device, dtype), part(f"{case}.")
    weights = {name: ARRAYS[f"weights.{prefix}{name}"].astype(dtype) for name in part(f"{case}.gradient.")}
    for stack, its in parts(kind, module).items():
        load_pytorch(its, weights, stack, (lambda name: renamed(name, HERE)) if kind == "model" else None)
    found = measure(kind, module, inputs_of(case))
    assert found.keys() == expected.keys()
    assert {array.dtype for array in found.values()} == {np.dtype(dtype)}
    for name, array in expected.items():
        bound = TOLERANCE[dtype] * max(abs(array).max(), 1e-3)
        np.testing.assert_allclose(found[name], array, rtol=0, atol=bound, err_msg=name)
