"""The forward pass of the Transformer for one sentence pair, of functions of arrays: no batch, no modules, no masks."""

import math

import numpy as np

from minigrad import functional as F

from transformer.model import sinusoid


class ByHand:
    """The forward pass of one sentence pair, token by token and head by head, from a state_dict."""

    def __init__(self, model):
        self.config, self.state = model.config, {name: t.numpy() for name, t in model.state_dict().items()}

    def linear(self, name, x):
        return x @ self.state[f"{name}.weight"].T + self.state.get(f"{name}.bias", 0.0)

    def norm(self, name, x):
        return F.layer_norm(x, self.state[f"{name}.weight"], self.state[f"{name}.bias"], self.config.layer_norm_eps)

    def attention(self, name, x, y, causal):
        size = self.config.d_model // self.config.num_heads
        q, k, v = self.linear(f"{name}.query", x), self.linear(f"{name}.key", y), self.linear(f"{name}.value", y)
        heads = [slice(start, start + size) for start in range(0, self.config.d_model, size)]
        out = [F.scaled_dot_product_attention(q[:, h], k[:, h], v[:, h], is_causal=causal) for h in heads]
        return self.linear(f"{name}.output", np.hstack(out))

    def feed_forward(self, name, x):
        activation, *approximate = self.config.activation.split("_")
        inner = self.linear(f"{name}.inner", x)
        return self.linear(f"{name}.outer", getattr(F, activation)(inner, *approximate))

    def residual(self, name, x, sublayer):
        if self.config.norm == "pre":
            return x + sublayer(self.norm(f"{name}_residual.norm", x))
        return self.norm(f"{name}_residual.norm", x + sublayer(x))

    def embedded(self, name, ids):
        c = self.config
        positions = sinusoid(len(ids), c.d_model, c.sinusoid_layout, c.first_position).astype(np.float32)
        if c.positions == "learned":
            positions = self.state[f"{name}.embedding.positions.table"][: len(ids)]
        return math.sqrt(c.d_model) * self.state[f"{name}.embedding.table.weight"][ids] + positions

    def stack(self, name, ids, depth, memory=None):
        x = self.embedded(name, ids)
        for i in range(depth):
            layer = f"{name}.layers.{i}"
            x = self.residual(f"{layer}.self_attention", x,
                              lambda y, n=layer: self.attention(f"{n}.self_attention", y, y, memory is not None))
            if memory is not None:
                x = self.residual(f"{layer}.cross_attention", x,
                                  lambda y, n=layer: self.attention(f"{n}.cross_attention", y, memory, False))
            x = self.residual(f"{layer}.feed_forward", x, lambda y, n=layer: self.feed_forward(f"{n}.feed_forward", y))
        return self.norm(f"{name}.norm", x) if self.config.has_final_norm else x

    def logits(self, source, target):
        memory = self.stack("encoder", source, self.config.num_encoder_layers)
        hidden = self.stack("decoder", target, self.config.num_decoder_layers, memory)
        output = "decoder.embedding.table" if self.config.tie_output else "projection"
        return self.linear(output, hidden)
