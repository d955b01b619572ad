"""Arguments of PyTorch's modules: each is an error that says what it is called here, or what to do instead."""

import inspect
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn
from minigrad import functional as F

from tests.transformer.tiny import tiny_config
from transformer import Encoder, MultiHeadAttention, Transformer, causal_mask, padding_mask
from transformer.model import DecoderLayer, EncoderLayer

X = Tensor(np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32))
IDS = np.array([[5, 6, 0], [5, 0, 0]])


def attention():
    return MultiHeadAttention(8, 2)


MAKING = {  # the argument, as PyTorch has it -> what the error says
    "embed_dim": (lambda: MultiHeadAttention(embed_dim=8, num_heads=2), "d_model"),
    "batch_first": (lambda: MultiHeadAttention(8, 2, batch_first=True), "always comes first"),
    "add_bias_kv": (lambda: MultiHeadAttention(8, 2, add_bias_kv=True), "leave it out"),
    "add_zero_attn": (lambda: MultiHeadAttention(8, 2, add_zero_attn=True), "leave it out"),
    "device": (lambda: MultiHeadAttention(8, 2, device="cpu"), '.to("cuda")'),
    "dtype": (lambda: MultiHeadAttention(8, 2, dtype=np.float64), ".to(dtype="),
    "nhead": (lambda: EncoderLayer(d_model=8, nhead=2), "num_heads"),
    "dim_feedforward": (lambda: DecoderLayer(dim_feedforward=16), "d_ff"),
    "norm_first": (lambda: EncoderLayer(norm_first=True), 'norm="pre"'),
    "nhead of a model": (lambda: Transformer(d_model=8, nhead=2), "TransformerConfig"),
    "num_encoder_layers": (lambda: Transformer(num_encoder_layers=2), "TransformerConfig"),
    "enable_nested_tensor": (lambda: Encoder(enable_nested_tensor=True), "leave it out"),
}
CALLING = {
    "attn_mask": (lambda m: attention()(X, X, X, attn_mask=m), "True = may not: mask=~attn_mask"),
    "key_padding_mask": (lambda m: attention()(X, X, X, key_padding_mask=m),
                         "mask=~key_padding_mask[:, None, None, :]"),
    "need_weights": (lambda m: attention()(X, X, X, need_weights=False), "return_weights"),
    "average_attn_weights": (lambda m: attention()(X, X, X, average_attn_weights=False), ".mean(1)"),
    "is_causal": (lambda m: attention()(X, X, X, is_causal=True), "mask=causal_mask(T)"),
    "src": (lambda m: EncoderLayer(tiny_config())(src=X), "called x"),
    "src_mask": (lambda m: EncoderLayer(tiny_config())(X, src_mask=m), "mask=~src_mask"),
    "src_key_padding_mask": (lambda m: EncoderLayer(tiny_config())(X, src_key_padding_mask=m),
                             "mask=padding_mask(ids)"),
    "tgt_mask": (lambda m: DecoderLayer(tiny_config())(X, X, tgt_mask=m), "mask=~tgt_mask"),
    "memory_key_padding_mask": (lambda m: DecoderLayer(tiny_config())(X, X, memory_key_padding_mask=m),
                                "memory_mask=padding_mask(ids)"),
    "tgt_is_causal": (lambda m: DecoderLayer(tiny_config())(X, X, tgt_is_causal=True), "mask=causal_mask(T)"),
    "tgt_key_padding_mask": (lambda m: Transformer(tiny_config())(IDS, IDS, tgt_key_padding_mask=m),
                             "makes its masks itself"),
    "tgt": (lambda m: Transformer(tiny_config())(src=IDS, tgt=IDS), "tgt is called target"),
    "the weights of the function": (lambda m: F.multi_head_attention(X, X, X, 2, need_weights=True), "return_weights"),
    "key_padding_mask of the function": (lambda m: F.multi_head_attention(X, X, X, 2, key_padding_mask=m),
                                         "attn_mask=padding_mask(ids)"),
}


@pytest.mark.parametrize("case", MAKING)
def test_an_argument_of_a_constructor(case):
    make, says = MAKING[case]
    with pytest.raises(TypeError, match=re.escape(says)) as info:
        make()
    assert case.partition(" ")[0] in str(info.value)
    assert "unexpected keyword argument" in str(info.value)


@pytest.mark.parametrize("case", CALLING)
def test_an_argument_of_a_call(case):
    call, says = CALLING[case]
    with pytest.raises(TypeError, match=re.escape(says)):
        call(np.ones((2, 3), bool))


def test_a_module_that_is_watched_says_the_same():
    watched = attention()
    watched.register_forward_hook(lambda module, args, output: None)
    for context in (mg.profile(), mg.no_grad()):
        with context, pytest.raises(TypeError, match="return_weights"):
            watched(X, X, X, need_weights=True)


def test_what_the_errors_advise_does_what_pytorch_does():
    attend = attention()
    key_padding_mask, attn_mask = IDS == 0, ~causal_mask(3)
    expected = attend(X, X, X, padding_mask(IDS) & causal_mask(3)).numpy()
    by_advice = attend(X, X, X, mask=~key_padding_mask[:, None, None, :] & ~attn_mask)
    np.testing.assert_array_equal(by_advice.numpy(), expected)


def test_modules_of_others_keep_their_own_arguments_and_pythons_errors():
    class Theirs(nn.Module):
        def __init__(self, config=None, **options):
            super().__init__()
            self.options = options

        def forward(self, x, *, attn_mask=None):
            return x, attn_mask

    assert Theirs(nhead=2).options == {"nhead": 2}
    assert Theirs()(1, attn_mask=2) == (1, 2)
    with pytest.raises(TypeError, match=r"forward\(\) got an unexpected keyword argument 'need_weights'"):
        Theirs()(1, need_weights=True)

    class Narrow(nn.Module):
        def __init__(self, config):
            super().__init__()

    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'nhead'"):
        Narrow(nhead=2)
    assert str(inspect.signature(Narrow)) == "(config)"
    assert not inspect.signature(nn.ReLU).parameters
