"""One training step and one decoding step, on the host and on every device: the same numbers, and all in its memory."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, optim
from minigrad.device import asarray_on, device_of, xp

from tests.conftest import DEVICES
from tests.transformer.tiny import LABELS, SOURCE, assert_same, tiny_model

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


# Another device than the host, the current one.
ELSEWHERE = pytest.mark.parametrize("device", DEVICES[1:], indirect=True)


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


@ELSEWHERE
@pytest.mark.parametrize(("model", "optimizer", "fused"), [
    ("pre-norm, relu", "Adam", True), ("post-norm, gelu, three-way tied", "SGD", True),
    ("gelu_tanh, learned positions", "SGD", False),
])
def test_training_gives_the_same_numbers_everywhere(device, model, optimizer, fused):
    with minigrad.fused(fused):
        here, there = (train(where, MODELS[model], OPTIMIZERS[optimizer]) for where in ("cpu", device))
    key_biases = [name for name in here if name.endswith("key.bias")]
    for name in key_biases:  # their gradient is 0 but for rounding, which Adam scales up to a whole step
        assert abs(here[name] - there.pop(name)).max() < 0.1
        del here[name]
    assert_same(there, here, 1e-9)


def test_training_on_another_device_than_the_current_one(stand_in):
    here, there = (train(where, {}, OPTIMIZERS["SGD"]) for where in ("cpu", "cuda:1"))
    assert_same(there, here, 1e-9)


def test_an_array_as_mask_is_sent_to_the_model_and_a_tensor_elsewhere_is_refused(stand_in):
    model, mask = tiny_model(np.float32, "cuda").eval(), np.ones((1, 1, 1, SOURCE.shape[1]), bool)
    mask[..., -1] = False
    source = asarray_on("cuda", SOURCE)
    np.testing.assert_array_equal(model.encoder(source, mask).numpy(),
                                  model.encoder(source, asarray_on("cuda", mask)).numpy())
    with pytest.raises(ValueError, match=r"cpu and cuda:0"):
        model.encoder(source, Tensor(mask))
