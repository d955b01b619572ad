"""The examples with published weights against the package transformers, where it and PyTorch are installed.

Its models are made small, with random weights, and saved as it saves them; outputs, every gradient and greedy texts of
the examples are then compared with its own, in float64.
"""

import runpy

import numpy as np
import pytest

from minigrad import Tensor
from minigrad.checkpoint import load_tensors

from tests.examples.test_published_weights import EXAMPLES, gradients_by_their_names
from transformer import LanguageModel, generate
from transformer.interop import load_pytorch

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
IDS = np.random.default_rng(0).integers(1, 40, (2, 9))
PADDED = np.where(np.arange(9) < [[9], [5]], IDS, 0)
SEGMENTS = IDS % 2
SOUND = np.random.default_rng(1).normal(size=(2, 8, 3000))


def gpt2(example):
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=40, n_positions=32, n_embd=24, n_layer=2, n_head=3, bos_token_id=0, eos_token_id=0))
    ours = LanguageModel(vocab_size=40, d_model=24, num_heads=3, num_layers=2, max_length=32, activation="gelu_tanh")
    return theirs, ours, lambda ids: theirs(ids).logits, ours


def bert(example):
    theirs = transformers.BertModel(transformers.BertConfig(
        vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=50,
        max_position_embeddings=16))
    ours = example["Bert"](40, 24, 3, 50, 2, 16)

    def outputs(ids):
        return theirs(torch.tensor(PADDED), torch.tensor(PADDED != 0), torch.tensor(SEGMENTS)).pooler_output

    return theirs, ours, outputs, lambda ids: ours(PADDED, SEGMENTS)[1]


def whisper(example):
    theirs = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(
        vocab_size=40, num_mel_bins=8, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
        decoder_attention_heads=3, encoder_ffn_dim=96, decoder_ffn_dim=96, pad_token_id=0, bos_token_id=0,
        eos_token_id=0, decoder_start_token_id=1))
    ours = example["Whisper"](40, 24, 3, 2, 8)
    return (theirs, ours, lambda ids: theirs(torch.tensor(SOUND), decoder_input_ids=ids).logits,
            lambda ids, past=0: ours.decoder(ids, memory=ours.encode(Tensor(SOUND))))


@pytest.mark.slow
@pytest.mark.parametrize("case", [gpt2, bert, whisper], ids=lambda case: case.__name__)
def test_outputs_gradients_and_texts_are_those_of_transformers(case, tmp_path):
    torch.manual_seed(0)
    example = runpy.run_path(str(EXAMPLES / f"{case.__name__}.py"))
    theirs, ours, their_output, our_output = case(example)
    fixed = "model.encoder.embed_positions.weight"  # a sinusoid
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            if name != fixed:
                weight.copy_(torch.randn_like(weight) * 0.3 + (weight.ndim == 1 and name.endswith("weight")))
    theirs.eval().save_pretrained(tmp_path)
    theirs.double()
    state = {name.removeprefix("transformer."): array
             for name, array in load_tensors(tmp_path / "model.safetensors")[0].items()}
    load_pytorch(ours.to(dtype=np.float64).eval(), state, rename=example["NAMES"])
    expected, found = their_output(torch.tensor(IDS)), our_output(IDS)
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=0, atol=1e-12)
    cotangent = np.sin(np.arange(found.size)).reshape(found.shape)
    (expected * torch.tensor(cotangent)).sum().backward()
    (found * Tensor(cotangent)).sum().backward()
    gradients = gradients_by_their_names(ours, state, example["NAMES"])
    for name, weight in theirs.named_parameters():
        if name != fixed:
            np.testing.assert_allclose(gradients.pop(name.removeprefix("transformer.")).numpy(), weight.grad.numpy(),
                                       rtol=0, atol=1e-10 * (1 + abs(weight.grad).max().item()), err_msg=name)
    assert gradients.keys() <= {"lm_head.weight", fixed}
    if case is not bert:
        ids, decoder = torch.tensor(IDS), getattr(ours, "decoder", ours)
        with torch.no_grad():
            for _ in range(20):
                ids = torch.cat([ids, their_output(ids)[:, -1:].argmax(2)], 1)
        more = {"memory": ours.encode(Tensor(SOUND))} if case is whisper else {}
        assert [text.ids for text in generate(decoder, IDS, 20, **more)] == ids[:, 9:].tolist()
