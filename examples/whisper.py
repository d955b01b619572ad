"""Write down speech with Whisper: python examples/whisper.py model.safetensors tokenizer.json log_mel.npy."""

import sys

import numpy as np
from tokenizers import Tokenizer

from minigrad import Tensor, nn
from minigrad import functional as F

from transformer import DecoderLayer, EncoderLayer, MultiHeadAttention, causal_mask
from transformer.interop import load_pytorch
from transformer.model import sinusoid

PROJECTIONS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
LAYER = {f"{theirs}.{part}": f"{ours}.{name}" for part, name in PROJECTIONS.items()
         for theirs, ours in (("self_attn", "self_attention"), ("encoder_attn", "cross_attention"))} | {
    "self_attn_layer_norm": "self_attention_residual.norm", "encoder_attn_layer_norm": "cross_attention_residual.norm",
    "fc1": "feed_forward.inner", "fc2": "feed_forward.outer", "final_layer_norm": "feed_forward_residual.norm"}
NAMES = {f"{stack}.layers.{{}}.{theirs}": f"{stack}.{{}}.{ours}" for stack in ("encoder", "decoder")
         for theirs, ours in LAYER.items()} | {
    "encoder.conv1": "conv1", "encoder.conv2": "conv2", "encoder.embed_positions.weight": "frames",
    "encoder.layer_norm": "memory_norm", "decoder.embed_tokens": "words", "decoder.embed_positions": "positions",
    "decoder.layer_norm": "norm"}
START, END = (50258, 50259, 50359, 50363), 50257  # start, English, transcribe, no times; the end


class Whisper(nn.Module):
    """Log-mel features → memory → logits; 30 seconds are 3,000 features and a memory of 1,500."""

    def __init__(self, vocab_size=51865, d_model=384, num_heads=6, d_ff=1536, num_layers=4, mels=80, frames=1500,
                 max_length=448):
        super().__init__()
        sizes = {"d_model": d_model, "num_heads": num_heads, "d_ff": d_ff, "activation": "gelu"}
        self.conv1 = nn.Conv1d(mels, d_model, 3, padding=1)
        self.conv2 = nn.Conv1d(d_model, d_model, 3, stride=2, padding=1)
        self.register_buffer("frames", Tensor(sinusoid(frames, d_model, "halves"), dtype=np.float32))
        self.encoder = nn.ModuleList(EncoderLayer(**sizes) for _ in range(num_layers))
        self.decoder = nn.ModuleList(DecoderLayer(**sizes) for _ in range(num_layers))
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):
                module.key.bias = None  # it would not change the weights of attention
        self.memory_norm, self.norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.words, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(max_length, d_model)

    def encode(self, features):
        """(B, mels, 2S) → (B, S, D)."""
        x = F.gelu(self.conv2(F.gelu(self.conv1(features)))).swapaxes(1, 2)
        x = x + self.frames[:x.shape[1]]
        for layer in self.encoder:
            x = layer(x)
        return self.memory_norm(x)

    def forward(self, memory, ids):
        """(B, S, D) and ids (B, T) → the logits of the token after each, (B, T, V)."""
        x, mask = self.words(ids) + self.positions.weight[:ids.shape[1]], causal_mask(ids.shape[1])
        for layer in self.decoder:
            x = layer(x, memory, mask)
        return F.linear(self.norm(x), self.words.weight)


def main(weights: str, tokenizer: str, log_mel: str) -> None:
    """Print the most probable text, of at most 40 tokens."""
    load_pytorch(model := Whisper().eval(), weights, prefix="model", rename=NAMES)
    memory = model.encode(Tensor(np.load(log_mel)[None]))
    ids = list(START)
    while len(ids) < 44 and ids[-1] != END:
        ids.append(int(model(memory, np.array([ids]))[0, -1].argmax()))
    print(Tokenizer.from_file(tokenizer).decode(ids))


if __name__ == "__main__":
    main(*sys.argv[1:])
