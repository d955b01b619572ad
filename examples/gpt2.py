"""Write on with GPT-2: python examples/gpt2.py model.safetensors tokenizer.json "Alan Turing theorized that"."""

import re
import sys

from tokenizers import Tokenizer

from minigrad import nn
from minigrad.checkpoint import load_tensors

from transformer import LanguageModel, generate
from transformer.interop import load_pytorch

NAMES = [
    (r"^transformer\.", ""), ("^(wte|lm_head)", "table"), ("^wpe", "positions"), (r"^h\.", "layers."),
    (r"attn\.c_attn\.", "self_attn.in_proj_"), (r"attn\.c_proj", "self_attn.out_proj"),
    (r"mlp\.c_fc", "linear1"), (r"mlp\.c_proj", "linear2"), ("ln_f", "norm"), ("ln_", "norm"),
]
SIZES = {"vocab_size": 50257, "d_model": 768, "num_heads": 12, "num_layers": 12, "max_length": 1024}


def rename(name):
    """The name here of a tensor of the checkpoint, or None for a causal mask."""
    for theirs, ours in NAMES:
        name = re.sub(theirs, ours, name)
    return None if re.search(r"\battn\.(masked_)?bias$", name) else name


def turned(state):
    """The same with matrices (out, in): those of GPT-2's layers are (in, out)."""
    return {name: array.T if re.search(r"c_\w+\.weight", name) else array for name, array in state.items()}


if __name__ == "__main__":
    weights, tokenizer, prompt = sys.argv[1:]
    with nn.no_init():
        model = LanguageModel(**SIZES, activation="gelu_tanh")
    load_pytorch(model, turned(load_tensors(weights)[0]), rename=rename)
    text = Tokenizer.from_file(tokenizer)
    [found] = generate(model, [text.encode(prompt).ids], 40)
    print(prompt + text.decode(found.ids))
