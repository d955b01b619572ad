"""Compare texts with BERT: python examples/bert.py model.safetensors tokenizer.json "It rains." "It is wet."."""

import re
import sys

import numpy as np
from tokenizers import Tokenizer

from minigrad import nn, tanh

from transformer import EncoderLayer, padding_mask
from transformer.interop import load_pytorch

NAMES = [
    (r"^(bert\.|embeddings\.|encoder\.)+", ""), ("gamma$", "weight"), ("beta$", "bias"),
    (r"attention\.self", "self_attention"), (r"attention\.output\.dense", "self_attention.output"),
    (r"attention\.output\.LayerNorm", "self_attention_residual.norm"), (r"intermediate\.dense", "feed_forward.inner"),
    (r"\boutput\.dense", "feed_forward.outer"), (r"\boutput\.LayerNorm", "feed_forward_residual.norm"),
    ("LayerNorm", "norm"), (r"_embeddings|\.dense", ""),
]


def rename(name):
    """The name here of a tensor of the checkpoint, or None if it has none."""
    for theirs, ours in NAMES:
        name = re.sub(theirs, ours, name)
    return None if re.search("cls|_ids", name) else name


class Bert(nn.Module):
    """BERT; the base model by default."""

    def __init__(self, vocab_size=30522, d_model=768, num_heads=12, d_ff=3072, num_layers=12, max_length=512):
        super().__init__()
        self.word, self.position, self.token_type = (nn.Embedding(n, d_model) for n in (vocab_size, max_length, 2))
        self.norm, self.pooler = nn.LayerNorm(d_model, 1e-12), nn.Linear(d_model, d_model)
        self.layer = nn.ModuleList(EncoderLayer(d_model=d_model, num_heads=num_heads, d_ff=d_ff, norm="post",
                                                activation="gelu", layer_norm_eps=1e-12) for _ in range(num_layers))

    def forward(self, ids, segments=0):
        """Ids and segments (B, T) → a vector for each token (B, T, D), and one for each text (B, D)."""
        x = self.norm(self.word(ids) + self.position.weight[:ids.shape[1]] + self.token_type.weight[segments])
        for layer in self.layer:
            x = layer(x, padding_mask(ids))
        return x, tanh(self.pooler(x[:, 0]))


if __name__ == "__main__":
    load_pytorch(model := Bert().eval(), sys.argv[1], rename=rename)
    tokens = Tokenizer.from_file(sys.argv[2])
    tokens.enable_padding()
    ids = np.array([encoding.ids for encoding in tokens.encode_batch(sys.argv[3:])])
    print(np.corrcoef(model(ids)[1].numpy()))  # how the vectors of each two texts correlate
