"""What the arguments of PyTorch's modules are called here, or what takes their place, for the error that says so.

This module is imported when a module is given a keyword argument that it lacks, and not before.
"""

from __future__ import annotations

from collections.abc import Collection

# PyTorch's name -> ours, the first of these that the module has
CALLED = {
    "embed_dim": ("d_model",),
    "nhead": ("num_heads",),
    "dim_feedforward": ("d_ff",),
    "need_weights": ("return_weights",),
    "src": ("source", "x"),
    "tgt": ("target", "x"),
    "input": ("x", "ids"),
    "dim": ("axis",),
    "start_dim": ("start_axis",),
    "end_dim": ("end_axis",),
}
INSTEAD = {
    "batch_first": "leave batch_first out, the batch always comes first here: (batch, length, features)",
    "norm_first": 'norm_first=True is norm="pre" here, and False is norm="post"',
    "average_attn_weights": "return_weights=True gives the weights of each head, (B, H, T, S); take their .mean(1)",
    "device": 'move the module to a device afterwards, .to("cuda")',
    "dtype": "convert the module to a dtype afterwards, .to(dtype=numpy.float64)",
    "inplace": "leave inplace out, every operation makes a new tensor",
    "size_average": 'size_average is reduction="mean" here, or reduction="sum"',
    "reduce": 'reduce=False is reduction="none" here',
}
# Options that nothing here has
ABSENT = {"add_bias_kv", "add_zero_attn", "enable_nested_tensor", "mask_check", "max_norm", "norm_type",
          "scale_grad_by_freq", "sparse", "padding_mode", "return_indices"}
# Options of a TransformerConfig by their own names
OPTIONS = {"d_model", "num_heads", "num_encoder_layers", "num_decoder_layers", "d_ff", "dropout", "activation", "bias",
           "layer_norm_eps", "norm", "norm_bias"}
# PyTorch's masks, True = may not attend -> the argument that takes ours, True = may attend
MASKS = {name: "memory_mask" if name.startswith("memory") else "mask" for name in [
    "attn_mask", "src_mask", "tgt_mask", "memory_mask", "key_padding_mask", "src_key_padding_mask",
    "tgt_key_padding_mask", "memory_key_padding_mask", "is_causal", "src_is_causal", "tgt_is_causal",
    "memory_is_causal"]}


def arguments(keywords: Collection[str], parameters: Collection[str]) -> str | None:
    """What to give in place of the `keywords`, which a module with these parameters lacks; None if that is unknown."""
    told = [text for text in (_instead(name, parameters) for name in keywords) if text]
    if "config" in parameters and "d_model" not in parameters and (told or not OPTIONS.isdisjoint(keywords)):
        told.append("sizes and options are those of the argument config, a TransformerConfig")
    return "; ".join(told) or None


def _instead(name: str, parameters: Collection[str]) -> str:
    """What to give in place of one argument; "" if that is unknown."""
    if name in MASKS:
        return _mask(name, MASKS[name], parameters)
    if name in CALLED:
        ours = [one for one in CALLED[name] if one in parameters or "config" in parameters]
        return f"{name} is called {ours[0]} here" if ours else ""
    return f"{name} is not an option here; leave it out" if name in ABSENT else INSTEAD.get(name, "")


def _mask(name: str, ours: str, parameters: Collection[str]) -> str:
    """What to give in place of one of PyTorch's masks."""
    if ours not in parameters:
        made_by_itself = "source" in parameters or "target" in parameters
        return f"{name}: the model makes its masks itself, from the ids" if made_by_itself else ""
    if name.endswith("is_causal"):
        return f"{name}=True is {ours}=causal_mask(T) here, of the package transformer"
    if name.endswith("key_padding_mask"):
        return (f"{name} is True at padding, {ours} is True where a query may attend: {ours}=padding_mask(ids), of the "
                f"package transformer, or {ours}=~{name}[:, None, None, :]; join several masks with &")
    return (f"{name} is called {ours} here, and True = may attend, where PyTorch's modules say True = may not: "
            f"{ours}=~{name}; join several masks with &")
