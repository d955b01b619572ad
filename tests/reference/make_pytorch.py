"""Makes pytorch.safetensors: what torch.nn.Transformer and its parts compute, in float64, and every gradient of it.

Run with PyTorch and safetensors installed: python tests/reference/make_pytorch.py (last: PyTorch 2.13.0, CPU).
The file holds one set of weights, that of a whole model, which every case uses a part of; the inputs, with unequal
lengths; and for each case the outputs and the gradients of ``sum(output * cotangent)``, for the weights by their names
and for the inputs. Arrays are named "weights.…", "inputs.…", "CASE.output", "CASE.gradient.NAME", "CASE.input.NAME".
"""

import json
import warnings
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn

FILE = Path(__file__).with_name("pytorch.safetensors")
SEED = 23
SIZES = {"d_model": 6, "num_heads": 2, "d_ff": 5, "source_vocab_size": 7, "target_vocab_size": 8, "max_length": 5}
WIDE = {"kdim": 5, "vdim": 7}
DEFAULTS = {"num_layers": 1, "norm_first": False, "activation": "relu", "bias": True, "eps": 1e-5}
PRE_GELU = {"norm_first": True, "activation": "gelu", "bias": False, "eps": 1e-2}
POST_GELU = {"norm_first": False, "activation": "gelu", "bias": False, "eps": 1e-2}

# Case -> (what kind of module, where its weights are in the whole model's, its options).
CASES = {
    "attention": ("attention", "transformer.decoder.layers.0.multihead_attn.", {}),
    "attention_wide": ("attention", "wide.", WIDE),
    "post_relu": ("transformer", "transformer.", {}),
    "post_gelu_no_bias": ("transformer", "transformer.", POST_GELU),
    "pre_gelu_no_bias": ("transformer", "transformer.", PRE_GELU),
    "model": ("model", "", {"num_layers": 2, "norm_first": True}),
}


class Model(nn.Module):
    """A sequence-to-sequence model as people write it around nn.Transformer, with learned positions."""

    def __init__(self, transformer, sizes):
        super().__init__()
        self.scale = sizes["d_model"] ** 0.5
        self.source_embedding = nn.Embedding(sizes["source_vocab_size"], sizes["d_model"])
        self.target_embedding = nn.Embedding(sizes["target_vocab_size"], sizes["d_model"])
        self.source_positions = nn.Embedding(sizes["max_length"], sizes["d_model"])
        self.target_positions = nn.Embedding(sizes["max_length"], sizes["d_model"])
        self.transformer = transformer
        self.generator = nn.Linear(sizes["d_model"], sizes["target_vocab_size"])

    def forward(self, source_ids, target_ids, **masks):
        def embed(ids, table, positions):
            return table(ids) * self.scale + positions(torch.arange(ids.shape[1]))

        source = embed(source_ids, self.source_embedding, self.source_positions)
        target = embed(target_ids, self.target_embedding, self.target_positions)
        return self.generator(self.transformer(source, target, **masks))


def build(kind, options):
    """PyTorch's module of a kind, in training mode and without dropout."""
    options = {**DEFAULTS, **options}
    bias, width, heads, dtype = options["bias"], SIZES["d_model"], SIZES["num_heads"], torch.float64
    if kind == "attention":
        widths = {name: options[name] for name in ("kdim", "vdim") if name in options}
        return nn.MultiheadAttention(width, heads, bias=bias, batch_first=True, dtype=dtype, **widths)
    same = {"dim_feedforward": SIZES["d_ff"], "dropout": 0.0, "activation": options["activation"], "bias": bias,
            "layer_norm_eps": options["eps"], "norm_first": options["norm_first"], "batch_first": True, "dtype": dtype}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="enable_nested_tensor is True")  # a fast path that is not taken here
        transformer = nn.Transformer(width, heads, options["num_layers"], options["num_layers"], **same)
    return transformer if kind == "transformer" else Model(transformer, SIZES).to(dtype)


def measure(kind, module, inputs):
    """Outputs by name, and the gradients for weights and inputs, as NumPy arrays; masks say True = may attend."""
    floats = {name: torch.tensor(a).requires_grad_() for name, a in inputs.items() if a.dtype.kind == "f"}
    source_real, target_real = (torch.tensor(inputs[f"{side}_ids"] != 0) for side in ("source", "target"))
    causal = torch.ones(target_real.shape[1], target_real.shape[1], dtype=torch.bool).tril()
    decoding = {"tgt_mask": ~causal, "tgt_key_padding_mask": ~target_real, "memory_key_padding_mask": ~source_real}
    outputs = {}
    if kind == "attention":
        q, k, v = (floats[name] for name in ("target", "key", "value"))
        allowed = torch.tensor(np.tri(q.shape[1], k.shape[1], 1, dtype=bool))
        outputs["output"], outputs["weights"] = module(
            q, k, v, key_padding_mask=~source_real, attn_mask=~allowed, average_attn_weights=False)
    elif kind == "transformer":
        outputs["output"] = module(floats["source"], floats["target"], src_key_padding_mask=~source_real, **decoding)
    else:
        ids = (torch.tensor(inputs[f"{side}_ids"]) for side in ("source", "target"))
        outputs["output"] = module(*ids, src_key_padding_mask=~source_real, **decoding)
    loss = sum((out * torch.tensor(cotangent(out.shape))).sum() for out in outputs.values())
    loss.backward()
    measured = {name: out.detach().numpy() for name, out in outputs.items()}
    measured |= {f"gradient.{name}": p.grad.numpy() for name, p in module.named_parameters()}
    measured |= {f"input.{name}": x.grad.numpy() for name, x in floats.items() if x.grad is not None}
    return {name: np.array(array, order="C") for name, array in measured.items()}  # save_file ignores strides


def cotangent(shape):
    """The gradient that arrives at an output: numbers without a pattern that anything could be blind to."""
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape)


def draw_inputs(rng, sizes=SIZES):
    """Features and padded ids (0 pads) of a batch with unequal lengths."""
    source_lengths, target_lengths = (4, 2), (1, 3)
    batch, longest = len(source_lengths), max(source_lengths)
    features = {"source": (longest, sizes["d_model"]), "target": (max(target_lengths), sizes["d_model"]),
                "key": (longest, sizes.get("kdim", sizes["d_model"])),
                "value": (longest, sizes.get("vdim", sizes["d_model"]))}
    inputs = {name: rng.normal(size=(batch, *shape)) for name, shape in features.items()}
    for side, lengths in (("source", source_lengths), ("target", target_lengths)):
        ids = rng.integers(1, sizes[f"{side}_vocab_size"], size=(batch, max(lengths)))
        inputs[f"{side}_ids"] = np.where(np.arange(max(lengths)) < np.array(lengths)[:, None], ids, 0)
    return inputs


def draw_weights(rng, module):
    """New values for every parameter, norms and biases too; returned by name."""
    weights = {name: rng.normal(size=p.shape) * p.shape[-1] ** -0.5 + ("norm" in name and "weight" in name)
               for name, p in module.named_parameters()}
    load(module, weights)
    return weights


def load(module, weights):
    """The values of `weights` into all parameters, under PyTorch's own control."""
    module.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})


def reference():
    """Everything the file holds: the arrays by name, and the facts."""
    rng = np.random.default_rng(SEED)
    inputs = draw_inputs(rng)
    narrow = {name: inputs[name] for name in ("key", "value")}
    wide_inputs = draw_inputs(rng, {**SIZES, **WIDE})
    weights = draw_weights(rng, build("model", {"num_layers": 2}))
    weights |= {f"wide.{name}": array for name, array in draw_weights(rng, build("attention", WIDE)).items()}
    inputs |= {f"wide_{name}": wide_inputs[name] for name in narrow}
    arrays = {f"weights.{name}": array for name, array in weights.items()}
    arrays |= {f"inputs.{name}": array for name, array in inputs.items()}
    for case, (kind, prefix, options) in CASES.items():
        module = build(kind, options)
        load(module, {name: weights[prefix + name] for name in module.state_dict()})
        given = {name: inputs[f"wide_{name}" if case == "attention_wide" and name in narrow else name]
                 for name in inputs if not name.startswith("wide_")}
        arrays |= {f"{case}.{name}": array for name, array in measure(kind, module, given).items()}
    cases = {case: [kind, prefix, {**DEFAULTS, **options}] for case, (kind, prefix, options) in CASES.items()}
    return arrays, {"sizes": SIZES, "cases": cases, "seed": SEED, "torch": torch.__version__, "numpy": np.__version__}


if __name__ == "__main__":
    found, facts = reference()
    save_file(found, FILE, {key: json.dumps(value) for key, value in facts.items()})
