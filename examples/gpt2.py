"""Write on with GPT-2: python examples/gpt2.py model.safetensors tokenizer.json "Alan Turing theorized that"."""

import sys

from tokenizers import Tokenizer

from minigrad import nn
from minigrad.checkpoint import load_tensors

from transformer import LanguageModel, generate
from transformer.interop import Fused, load_pytorch, transposed

LAYER, ATTENTION = "layers.{}", "layers.{}.self_attention"
NAMES = {
    "wte": "table", "lm_head": "table", "wpe": "positions", "ln_f": "norm",
    "h.{}.ln_1": f"{LAYER}.norm1",
    "h.{}.attn.c_attn": Fused((f"{ATTENTION}.query", f"{ATTENTION}.key", f"{ATTENTION}.value"), transpose=True),
    "h.{}.attn.c_proj": transposed(f"{ATTENTION}.output"),
    "h.{}.ln_2": f"{LAYER}.norm2",
    "h.{}.mlp.c_fc": transposed(f"{LAYER}.linear1"),
    "h.{}.mlp.c_proj": transposed(f"{LAYER}.linear2"),
    "h.{}.attn.bias": None, "h.{}.attn.masked_bias": None,  # the causal mask
}
SIZES = {"vocab_size": 50257, "d_model": 768, "num_heads": 12, "num_layers": 12, "max_length": 1024}


if __name__ == "__main__":
    weights, tokenizer, prompt = sys.argv[1:]
    with nn.no_init():
        model = LanguageModel(**SIZES, activation="gelu_tanh")
    # Some files have the model within another, which projects to logits.
    state = {name.removeprefix("transformer."): array for name, array in load_tensors(weights)[0].items()}
    load_pytorch(model, state, rename=NAMES)
    text = Tokenizer.from_file(tokenizer)
    [found] = generate(model, [text.encode(prompt).ids], 40)
    print(prompt + text.decode(found.ids))
