"""Our side of the comparison with PyTorch: the module for a case, and what it computes, by PyTorch's names."""

import numpy as np

from minigrad import Tensor
from minigrad.device import asarray_on, to_numpy

from transformer import MultiHeadAttention, Transformer, TransformerConfig, causal_mask, padding_mask
from transformer.interop import load_pytorch, to_pytorch


def config(options, sizes):
    """The configuration that stands for PyTorch's constructor arguments."""
    return TransformerConfig(
        sizes["source_vocab_size"], sizes["target_vocab_size"], d_model=sizes["d_model"], num_heads=sizes["num_heads"],
        num_encoder_layers=options["num_layers"], num_decoder_layers=options["num_layers"], d_ff=sizes["d_ff"],
        dropout=0.0, norm="pre" if options["norm_first"] else "post", final_norm=True,
        activation=options["activation"], positions="learned", max_length=sizes["max_length"], bias=options["bias"],
        norm_bias=options["bias"], output_bias=True, layer_norm_eps=options["eps"])


def build(kind, options, sizes, dtype=np.float64, device="cpu"):
    """Our module of a kind."""
    if kind == "attention":
        module = MultiHeadAttention(sizes["d_model"], sizes["num_heads"], bias=options["bias"],
                                    kdim=options.get("kdim"), vdim=options.get("vdim"))
    else:
        module = Transformer(config(options, sizes))
    return module.to(device, dtype)


AROUND = {"encoder.embedding.table": "source_embedding", "decoder.embedding.table": "target_embedding",
          "encoder.embedding.positions": "source_positions", "decoder.embedding.positions": "target_positions",
          "projection": "generator", "encoder": "transformer.encoder", "decoder": "transformer.decoder"}


def here(name):
    """The name of `pytorch_names` of a tensor of the whole model, which stands around PyTorch's ``nn.Transformer``."""
    return next((ours + name.removeprefix(theirs) for ours, theirs in AROUND.items() if name.startswith(f"{theirs}.")),
                name)


def there(name):
    """The inverse of `here`."""
    return next((theirs + name.removeprefix(ours) for ours, theirs in AROUND.items() if name.startswith(f"{ours}.")),
                name)


def parts(kind, module):
    """The parts that PyTorch has, by their prefixes: of a bare ``nn.Transformer`` its stacks."""
    return {"encoder": module.encoder, "decoder": module.decoder} if kind == "transformer" else {"": module}


def load(kind, module, weights):
    for prefix, part in parts(kind, module).items():
        load_pytorch(part, weights, prefix, here if kind == "model" else None)


def saved(kind, module, gradients=False):
    """Weights or gradients, by PyTorch's names."""
    found = {name: tensor for prefix, part in parts(kind, module).items()
             for name, tensor in to_pytorch(part, prefix, gradients).items()}
    return {there(name): tensor for name, tensor in found.items()} if kind == "model" else found


def cotangent(shape):
    """The gradient that arrives at an output, as in tests/reference/make_pytorch.py."""
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape)


def outputs(kind, module, floats, source_ids, target_ids):
    """What the module computes: Tensors by name."""
    device = next(module.parameters()).device
    padding = padding_mask(asarray_on(device, source_ids))
    causal = causal_mask(target_ids.shape[1], device=device) & padding_mask(asarray_on(device, target_ids))
    source, target = floats["source"], floats["target"]
    if kind == "attention":
        past = asarray_on(device, np.tri(target.shape[1], floats["key"].shape[1], 1, dtype=bool))
        output, weights = module(target, floats["key"], floats["value"], padding & past, return_weights=True)
        return {"output": output, "weights": weights}
    if kind == "transformer":
        memory = module.encoder.transform(source, padding)
        return {"output": module.decoder.transform(target, memory, causal, padding)}
    return {"output": module(source_ids, target_ids)}


def measure(kind, module, inputs):
    """Outputs, and the gradients for all weights and inputs of ``sum(output * cotangent)``, as NumPy arrays."""
    first = next(module.parameters())
    floats = {name: Tensor(array.astype(first.dtype), device=first.device, requires_grad=True)
              for name, array in inputs.items() if array.dtype.kind == "f"}
    module.zero_grad()
    found = outputs(kind, module, floats, inputs["source_ids"], inputs["target_ids"])
    loss = sum((out * Tensor(cotangent(out.shape).astype(out.dtype), device=out.device)).sum()
               for out in found.values())
    loss.backward()
    measured = {name: to_numpy(out.data) for name, out in found.items()}
    measured |= {f"gradient.{name}": to_numpy(g.data) for name, g in saved(kind, module, gradients=True).items()}
    measured |= {f"input.{name}": to_numpy(x.grad.data) for name, x in floats.items() if x.grad is not None}
    return measured


def largest_difference(found, expected):
    """The largest difference of any two numbers, in proportion to the largest of its array; and where it is."""
    assert found.keys() == expected.keys()
    return max((float(abs(found[name] - array).max() / max(abs(array).max(), 1e-3)), name)
               for name, array in expected.items())
