"""What passes between the host and the device: each array that is sent, and each time that the host waits.

A model's traffic is that of its inputs: a training step sends its ids, and with dropout the key of its masks, and waits
for nothing. A step of decoding waits once, to read
back the tokens that were chosen.
"""

from functools import partial

import numpy as np
import pytest

import minigrad
from minigrad import optim
from minigrad.device import asarray_on, cuda_status

from tests.transformer.decoding_models import peaked_model, prefer, random_sources
from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer.decode import beam_search, greedy


def training_step(device, **options):
    """A function that makes one update with ids from wherever they are; it has made one already."""
    model = tiny_model(np.float32, device, **options)
    parameters = list(model.parameters())
    optimizer = optim.AdamW(parameters, lr=0.01)

    def step(source, labels):
        optimizer.zero_grad()
        model.loss(source, labels, 0.1).backward()
        optim.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    step(SOURCE, LABELS)
    return step


# --- Training -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("where", "positions", "fused"), [
    ("cuda:0", "sinusoidal", True), ("cuda:1", "learned", True), ("cuda:1", "sinusoidal", False)])
def test_a_training_step_sends_its_ids_and_waits_for_nothing(where, positions, fused, stand_in):
    with minigrad.fused(fused):
        step = training_step(where, positions=positions)
        stand_in.clear()
        step(SOURCE, LABELS)
        assert stand_in.uploads == {"asarray": 2}
        assert stand_in.uploaded_bytes == {"asarray": SOURCE.nbytes + LABELS.nbytes}
        assert not stand_in.synchronizations
        ids = asarray_on(where, SOURCE), asarray_on(where, LABELS)
        stand_in.clear()
        step(*ids)
    assert not stand_in.uploads, "they are there already"
    assert not stand_in.synchronizations


def test_dropout_sends_the_key_of_a_step_and_draws_its_masks_on_the_device(stand_in):
    step = training_step("cuda", dropout=0.2)
    minigrad.random.set_step(minigrad.random.get_state()["step"] + 1)
    stand_in.clear()
    step(SOURCE, LABELS)
    assert minigrad.random.get_state()["call"] == 12  # two embeddings, three attentions, five residuals, two inside
    assert stand_in.uploads == {"asarray": 2, "set": 1}
    assert stand_in.uploaded_bytes["set"] == 3 * 8
    assert not stand_in.synchronizations


# --- Decoding -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("decode", "masks", "where", "fused"), [
    (greedy, 0, "cuda:0", True), (partial(beam_search, beam_size=3), 2, "cuda:1", True),
    (partial(beam_search, beam_size=3), 2, "cuda:1", False)])
def test_a_step_of_decoding_waits_once(decode, masks, where, fused, stand_in):
    """All sentences go on to the greatest length: a step sends ids and, in beam search, what each hypothesis sees."""
    model, source, steps = prefer(peaked_model(2), eos=-100.0).to(where), random_sources(2), 12
    stand_in.clear()
    with minigrad.fused(fused):
        decode(model, source, max_length=steps)
    assert stand_in.synchronizations == {"get": steps}
    assert stand_in.uploads == {"asarray": 1 + steps + masks * (steps - 1)}  # at first there is one hypothesis


# --- A real GPU -----------------------------------------------------------------------------------

if cuda_status().devices:  # elsewhere there is no such test, rather than a skipped one

    @pytest.mark.gpu
    @pytest.mark.filterwarnings("ignore:cupyx.allow_synchronize")  # CuPy may overlook a wait; what it sees is one
    def test_cupy_sees_no_wait_in_a_training_step():
        cupyx = pytest.importorskip("cupyx")
        step, ids = training_step("cuda"), (asarray_on("cuda", SOURCE), asarray_on("cuda", LABELS))
        with cupyx.allow_synchronize(False):
            step(*ids)
