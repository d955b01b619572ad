"""Compare texts with BERT: python examples/bert.py model.safetensors tokenizer.json "It rains." "It is wet."."""

import sys

import numpy as np
from tokenizers import Tokenizer

from minigrad import nn, tanh
from minigrad.checkpoint import load_tensors

from transformer import EncoderLayer, padding_mask
from transformer.interop import load_pytorch

LAYER = {f"attention.self.{name}": f"self_attention.{name}" for name in ("query", "key", "value")} | {
    "attention.output.dense": "self_attention.output", "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1", "output.dense": "linear2", "output.LayerNorm": "norm2"}
NAMES = {f"encoder.layer.{{}}.{theirs}": f"layers.{{}}.{ours}" for theirs, ours in LAYER.items()} | {
    "embeddings.word_embeddings": "words", "embeddings.position_embeddings": "positions", "pooler.dense": "pooler",
    "embeddings.token_type_embeddings": "segments", "embeddings.LayerNorm": "norm", "embeddings.position_ids": None}


class Bert(nn.Module):
    """BERT; the base model by default."""

    def __init__(self, vocab_size=30522, d_model=768, num_heads=12, d_ff=3072, num_layers=12, max_length=512):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(max_length, d_model)
        self.segments, self.norm = nn.Embedding(2, d_model), nn.LayerNorm(d_model, 1e-12)
        self.layers = nn.ModuleList(EncoderLayer(d_model=d_model, num_heads=num_heads, d_ff=d_ff, norm="post",
                                                 activation="gelu", layer_norm_eps=1e-12) for _ in range(num_layers))
        self.pooler = nn.Linear(d_model, d_model)

    def forward(self, ids, segments):
        """Ids and segments (B, T) → a vector for each token (B, T, D), and one for each text (B, D)."""
        x = self.norm(self.words(ids) + self.positions.weight[:ids.shape[1]] + self.segments(segments))
        for layer in self.layers:
            x = layer(x, padding_mask(ids))
        return x, tanh(self.pooler(x[:, 0]))


def main(weights: str, tokenizer: str, *texts: str) -> None:
    """Print how the vectors of each two texts correlate."""
    state = {name.replace("gamma", "weight").replace("beta", "bias"): array  # what the norms' were called at first
             for name, array in load_tensors(weights)[0].items()}
    load_pytorch(model := Bert().eval(), state, prefix="bert", rename=NAMES)
    tokens = Tokenizer.from_file(tokenizer)
    tokens.enable_padding()
    ids = np.array([encoding.ids for encoding in tokens.encode_batch(list(texts))])
    vectors = model(ids, np.zeros_like(ids))[1].numpy()
    print(np.corrcoef(vectors))


if __name__ == "__main__":
    main(*sys.argv[1:])
