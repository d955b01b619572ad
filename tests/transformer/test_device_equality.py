"""One training step and one decoding step, on the host and on every device: the same numbers, and all in its memory."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, optim
from minigrad.device import asarray_on, device_of, to_numpy, xp

from tests.transformer.tiny import BOS, LABELS, SOURCE, assert_same, tiny_model
from transformer.decode.next_token import OnArrays
from transformer.decode.steps import decoding

THREE_WAY = {"share_embeddings": True, "tie_output": True}
MODELS = {
    "pre-norm, relu": {},
    "post-norm, gelu, three-way tied": {"norm": "post", "activation": "gelu", **THREE_WAY},
    "gelu_tanh, learned positions": {"activation": "gelu_tanh", "positions": "learned", "num_decoder_layers": 2},
}
OPTIMIZERS = {
    "SGD": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: optim.Adam(parameters, lr=0.01),
}


@pytest.fixture(params=[0, 1])
def place(request, device):
    """A device of the machine: the host, or either of two, of which the first is the current one."""
    if device == "cpu" or request.param == 0:
        return device
    other = f"cuda:{request.param}"
    try:
        asarray_on(other, np.zeros(1))
    except minigrad.DeviceError as error:
        pytest.skip(str(error))
    return other


def train(device, options, make_optimizer, steps=2, dtype=np.float64):
    """Losses, gradients and parameters after training steps with dropout; every array must be on `device`."""
    model = tiny_model(dtype, device, dropout=0.2, **options)
    optimizer = make_optimizer(list(model.parameters()))
    source, labels = asarray_on(device, SOURCE), asarray_on(device, LABELS)
    losses = []
    with minigrad.random.fork(6):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model.loss(source, labels, label_smoothing=0.1)
            loss.backward()
            optim.clip_grad_norm_(list(model.parameters()), 1.0)
            optimizer.step()
            losses.append(loss)
    for tensor in [*losses, *model.parameters(), *model.buffers(), *(p.grad for p in model.parameters())]:
        assert device_of(tensor.data) == tensor.device == device
        assert type(tensor.data) is xp(tensor.data).ndarray
        assert tensor.dtype == dtype
    return {
        "losses": np.array([loss.numpy() for loss in losses]),
        **{name: parameter.numpy() for name, parameter in model.named_parameters()},
        **{f"gradient of {name}": parameter.grad.numpy() for name, parameter in model.named_parameters()},
    }


@pytest.mark.parametrize(("fused", "optimizer"), [(True, "Adam"), (False, "SGD")], ids=["fused-Adam", "by steps-SGD"])
@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS.keys())
def test_training_gives_the_same_numbers_everywhere(place, options, optimizer, fused):
    with minigrad.fused(fused):
        here, there = (train(where, options, OPTIMIZERS[optimizer]) for where in ("cpu", place))
    key_biases = [name for name in here if name.endswith("key.bias")]
    for name in key_biases:  # their gradient is 0 but for rounding, which Adam scales up to a whole step
        assert abs(here[name] - there.pop(name)).max() < 0.1
        del here[name]
    assert_same(there, here, 1e-9)


def test_float32_agrees_to_its_own_precision(device):
    here = train("cpu", {}, OPTIMIZERS["SGD"], dtype=np.float32)
    there = train(device, {}, OPTIMIZERS["SGD"], dtype=np.float32)
    assert_same(there, here, 1e-3)


def decode(device, options):
    """Logits of two steps by the KV cache, the second of other rows, and of all tokens at once; copied to the host."""
    model = tiny_model(np.float64, device, **options).eval()
    tokens = np.array([[BOS, 7], [BOS, 4]])
    with decoding(model):
        memory, mask = model.encode(SOURCE), model.memory_mask(SOURCE)
        step = OnArrays(model, memory, mask)
        first = step(tokens[:, :1]).copy()
        step.select(np.array([1, 1]))
        second = step(tokens[:, 1:])
        whole = model.decode(tokens, memory[[1, 1]], mask[[1, 1]])
    for array in (memory.data, first, second, whole.data, mask):
        assert device_of(array) == device
    return {"first": to_numpy(first), "second": to_numpy(second), "whole": whole.numpy(), "memory": memory.numpy(),
            "mask": to_numpy(mask).astype(float)}


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS.keys())
def test_decoding_gives_the_same_logits_everywhere_and_with_the_cache(place, options):
    here, there = decode("cpu", options), decode(place, options)
    assert_same(there, here)
    np.testing.assert_allclose(there["second"], there["whole"][:, 1], rtol=0, atol=1e-12)


def test_an_array_as_mask_is_sent_to_the_model_and_a_tensor_elsewhere_is_refused(stand_in):
    model, mask = tiny_model(np.float32, "cuda").eval(), np.ones((1, 1, 1, SOURCE.shape[1]), bool)
    mask[..., -1] = False
    source = asarray_on("cuda", SOURCE)
    np.testing.assert_array_equal(model.encoder(source, mask).numpy(),
                                  model.encoder(source, asarray_on("cuda", mask)).numpy())
    with pytest.raises(ValueError, match=r"operands on cpu and cuda:0; move one with \.to\("):
        model.encoder(source, Tensor(mask))
