"""Makes published.safetensors: what GPT-2, BERT and Whisper compute, in float64, from weights by their published names.

Run with PyTorch installed: python tests/reference/make_published.py (last: PyTorch 2.14.1, CPU). The formulas are
those of the papers and of the published configurations, on a dictionary of weights. `draw` makes the weights without
PyTorch, so they are not in the file. It holds the output of each case, by its name.
"""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

FILE = Path(__file__).with_name("published.safetensors")
D, HEADS, WORDS, LENGTH, LAYERS = 8, 2, 11, 7, 2  # width, heads, vocabulary, positions, layers


def norm(name):
    return {f"{name}.weight": (D,), f"{name}.bias": (D,)}


def linear(name, out=D, into=D, bias=True, turned=False):
    return {f"{name}.weight": (into, out) if turned else (out, into), **({f"{name}.bias": (out,)} if bias else {})}


def gpt2_shapes():
    shapes = {"wte.weight": (WORDS, D), "wpe.weight": (LENGTH, D), **norm("ln_f")}
    for h in (f"h.{i}" for i in range(LAYERS)):
        shapes |= norm(f"{h}.ln_1") | norm(f"{h}.ln_2") | linear(f"{h}.attn.c_attn", 3 * D, turned=True)
        shapes |= linear(f"{h}.attn.c_proj", turned=True) | linear(f"{h}.mlp.c_fc", 4 * D, turned=True)
        shapes |= linear(f"{h}.mlp.c_proj", D, 4 * D, turned=True)
    return shapes


def bert_shapes():
    tables = {"word": WORDS, "position": LENGTH, "token_type": 2}
    shapes = {f"bert.embeddings.{name}_embeddings.weight": (size, D) for name, size in tables.items()}
    shapes |= norm("bert.embeddings.LayerNorm") | linear("bert.pooler.dense")
    for h in (f"bert.encoder.layer.{i}" for i in range(LAYERS)):
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes |= linear(f"{h}.{part}")
        shapes |= norm(f"{h}.attention.output.LayerNorm") | norm(f"{h}.output.LayerNorm")
        shapes |= linear(f"{h}.intermediate.dense", 3 * D) | linear(f"{h}.output.dense", D, 3 * D)
    return shapes


def whisper_shapes():
    mels = 3
    shapes = {"model.encoder.conv1.weight": (D, mels, 3), "model.encoder.conv1.bias": (D,),
              "model.encoder.conv2.weight": (D, D, 3), "model.encoder.conv2.bias": (D,),
              "model.encoder.embed_positions.weight": (1500, D), "model.decoder.embed_positions.weight": (448, D),
              "model.decoder.embed_tokens.weight": (WORDS, D)}
    for stack, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        shapes |= norm(f"model.{stack}.layer_norm")
        for h in (f"model.{stack}.layers.{i}" for i in range(LAYERS)):
            for a in (f"{h}.{name}" for name in attentions):
                shapes |= linear(f"{a}.q_proj") | linear(f"{a}.k_proj", bias=False) | linear(f"{a}.v_proj")
                shapes |= linear(f"{a}.out_proj") | norm(f"{a}_layer_norm")
            shapes |= norm(f"{h}.final_layer_norm") | linear(f"{h}.fc1", 4 * D) | linear(f"{h}.fc2", D, 4 * D)
    return shapes


def draw(shapes, seed):
    """Weights by name, float64."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) * 0.4 + ("norm" in name.lower() and "weight" in name)
            for name, shape in shapes.items()}


IDS = np.array([[3, 7, 1, 9, 4], [5, 2, 8, 0, 0]])  # 0 pads in BERT
SEGMENTS = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
SOUND = np.random.default_rng(5).normal(size=(2, 3, 12))
SHAPES = {"gpt2": gpt2_shapes, "bert": bert_shapes, "whisper": whisper_shapes}


def layers(w, eps):
    """A linear layer and a layer norm, as functions of what they are applied to and of a name."""
    from torch.nn import functional as F

    return (lambda x, name: F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias")),
            lambda x, name: F.layer_norm(x, (D,), w[f"{name}.weight"], w[f"{name}.bias"], eps))


def gpt2(w):
    import torch

    w = {name: array.T if ".c_" in name and name.endswith("weight") else array for name, array in w.items()}
    ids, (dense, layer_norm) = torch.tensor(IDS), layers(w, 1e-5)
    x = w["wte.weight"][ids] + w["wpe.weight"][:ids.shape[1]]
    for h in (f"h.{i}" for i in range(LAYERS)):
        q, k, v = dense(layer_norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn").split(D, dim=2)
        x = x + dense(attend(q, k, v, later(ids)), f"{h}.attn.c_proj")
        y = dense(layer_norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc")
        y = 0.5 * y * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (y + 0.044715 * y ** 3)))
        x = x + dense(y, f"{h}.mlp.c_proj")
    return layer_norm(x, "ln_f") @ w["wte.weight"].T


def bert(w):
    import torch
    from torch.nn import functional as F

    ids, (dense, layer_norm), e = torch.tensor(IDS), layers(w, 1e-12), "bert.embeddings"
    x = w[f"{e}.word_embeddings.weight"][ids] + w[f"{e}.position_embeddings.weight"][:ids.shape[1]]
    x = layer_norm(x + w[f"{e}.token_type_embeddings.weight"][torch.tensor(SEGMENTS)], f"{e}.LayerNorm")
    for h in (f"bert.encoder.layer.{i}" for i in range(LAYERS)):
        q, k, v = (dense(x, f"{h}.attention.self.{name}") for name in ("query", "key", "value"))
        y = attend(q, k, v, (ids == 0)[:, None, None, :])
        x = layer_norm(x + dense(y, f"{h}.attention.output.dense"), f"{h}.attention.output.LayerNorm")
        y = F.gelu(dense(x, f"{h}.intermediate.dense"))
        x = layer_norm(x + dense(y, f"{h}.output.dense"), f"{h}.output.LayerNorm")
    return torch.cat([x, torch.tanh(dense(x[:, :1], "bert.pooler.dense"))], 1)  # the pooled vector last


def whisper(w):
    import torch
    from torch.nn import functional as F

    w = {name.removeprefix("model."): value for name, value in w.items()}
    dense, layer_norm = layers(w, 1e-5)

    def attention(x, y, name, masked=None):
        q, k, v = (dense(z, f"{name}.{p}_proj") for z, p in ((x, "q"), (y, "k"), (y, "v")))
        return dense(attend(q, k, v, masked), f"{name}.out_proj")

    def feed_forward(x, h):
        return x + dense(F.gelu(dense(layer_norm(x, f"{h}.final_layer_norm"), f"{h}.fc1")), f"{h}.fc2")

    x = F.gelu(F.conv1d(torch.tensor(SOUND), w["encoder.conv1.weight"], w["encoder.conv1.bias"], padding=1))
    x = F.gelu(F.conv1d(x, w["encoder.conv2.weight"], w["encoder.conv2.bias"], stride=2, padding=1)).transpose(1, 2)
    x = x + w["encoder.embed_positions.weight"][:x.shape[1]]
    for h in (f"encoder.layers.{i}" for i in range(LAYERS)):
        y = layer_norm(x, f"{h}.self_attn_layer_norm")
        x = feed_forward(x + attention(y, y, f"{h}.self_attn"), h)
    memory, ids = layer_norm(x, "encoder.layer_norm"), torch.tensor(IDS)
    x = w["decoder.embed_tokens.weight"][ids] + w["decoder.embed_positions.weight"][:ids.shape[1]]
    for h in (f"decoder.layers.{i}" for i in range(LAYERS)):
        y = layer_norm(x, f"{h}.self_attn_layer_norm")
        x = x + attention(y, y, f"{h}.self_attn", later(ids))
        x = x + attention(layer_norm(x, f"{h}.encoder_attn_layer_norm"), memory, f"{h}.encoder_attn")
        x = feed_forward(x, h)
    return layer_norm(x, "decoder.layer_norm") @ w["decoder.embed_tokens.weight"].T


def later(ids):
    """True where a key stands after the query."""
    import torch

    return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)


def attend(q, k, v, masked):
    """Scaled dot-product attention, head by head; `masked` is True where no one may attend."""
    q, k, v = (x.reshape(*x.shape[:2], HEADS, -1).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    if masked is not None:
        scores = scores.masked_fill(masked, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def reference():
    """Everything that the file holds."""
    import torch

    formulas = {"gpt2": gpt2, "bert": bert, "whisper": whisper}
    return {case: np.array(formula({name: torch.tensor(array) for name, array in draw(SHAPES[case](), seed).items()}),
                           order="C") for seed, (case, formula) in enumerate(formulas.items())}


if __name__ == "__main__":
    save_file(reference(), FILE)
