"""Write down speech with Whisper: python examples/whisper.py model.safetensors tokenizer.json log_mel.npy."""

import re
import sys

import numpy as np
from tokenizers import Tokenizer

import minigrad as mg
from minigrad import Tensor, nn
from minigrad import functional as F

from transformer import EncoderLayer, LanguageModel, MultiHeadAttention, generate
from transformer.interop import load_pytorch

NAMES = [
    (r"^(model\.)?(encoder\.)?", ""), ("^proj_out", "decoder.table"),
    ("self_attn", "self_attention"), ("encoder_attn", "cross_attention"),
    ("attention_layer_norm", "attention_residual.norm"), ("final_layer_norm", "feed_forward_residual.norm"),
    ("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "output"),
    ("fc1", "feed_forward.inner"), ("fc2", "feed_forward.outer"),
    ("embed_tokens", "table"), ("embed_positions", "positions"), ("layer_norm", "norm"),
]


def rename(name):
    """The name here of a tensor of the checkpoint."""
    for theirs, ours in NAMES:
        name = re.sub(theirs, ours, name)
    return name


class Convolution(nn.Module):
    """Each output from three neighbours of the input."""

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.weight, self.stride = nn.Parameter(np.zeros((outputs, inputs, 3), np.float32)), stride
        self.bias = nn.Parameter(np.zeros(outputs, np.float32))

    def forward(self, x):
        """(B, T, inputs) → (B, T / stride, outputs)."""
        padded = mg.pad(x, ((0, 0), (1, 1), (0, 0)))
        near = mg.stack([padded[:, k:k + x.shape[1]:self.stride] for k in range(3)], axis=-1)  # (B, T, inputs, 3)
        return F.linear(near.flatten(2), self.weight.flatten(1), self.bias)


class Whisper(nn.Module):
    """An encoder of speech, and a decoder that attends to its output; the tiny model by default."""

    def __init__(self, vocab_size=51865, d_model=384, num_heads=6, num_layers=4, mels=80):
        super().__init__()
        sizes = {"d_model": d_model, "num_heads": num_heads, "d_ff": 4 * d_model, "activation": "gelu"}
        self.conv1, self.conv2 = Convolution(mels, d_model), Convolution(d_model, d_model, stride=2)
        self.positions, self.norm = nn.Embedding(1500, d_model).requires_grad_(False), nn.LayerNorm(d_model)
        self.layers, self.gelu = nn.Sequential(*(EncoderLayer(**sizes) for _ in range(num_layers))), nn.GELU()
        self.decoder = LanguageModel(vocab_size, num_layers=num_layers, max_length=448, cross_attention=True, **sizes)
        for attention in (module for module in self.modules() if isinstance(module, MultiHeadAttention)):
            attention.key.bias = None  # it would add the same to all scores of a query

    def encode(self, features):
        """Log-mel features, (B, mels, 3000) for 30 seconds → (B, 1500, D)."""
        x = self.gelu(self.conv2(self.gelu(self.conv1(features.swapaxes(1, 2)))))
        return self.norm(self.layers(x + self.positions.weight[:x.shape[1]]))


if __name__ == "__main__":
    load_pytorch(model := Whisper().eval(), sys.argv[1], rename=rename)
    memory = model.encode(Tensor(np.load(sys.argv[3])[None]))  # below: start, English, transcribe, no times; the end
    [found] = generate(model.decoder, [[50258, 50259, 50359, 50363]], 40, end_id=50257, memory=memory)
    print(Tokenizer.from_file(sys.argv[2]).decode(found.ids))
