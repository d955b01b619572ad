"""What passes between the host and the device: each array that is sent, and each time that the host waits.

A model's traffic is that of its inputs: a training step sends its ids and its dropout masks (which are drawn on the
host, so that a seed gives the same ones on every device) and waits for nothing. A step of decoding waits once, to read
back the tokens that were chosen.
"""

import math

import numpy as np
import pytest

import minigrad
from minigrad import optim
from minigrad.device import asarray_on, cuda_status, to_numpy

from tests.transformer.decoding_models import peaked_model, prefer, random_sources
from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer.decode import beam_search, greedy, sample
from transformer.decode.next_token import OnArrays
from transformer.decode.steps import Steps
from transformer.model import causal_mask

OPTIMIZERS = {
    "SGD": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9),
    "AdamW": lambda parameters: optim.AdamW(parameters, lr=0.01),
}


def training_step(device, make_optimizer=OPTIMIZERS["AdamW"], **options):
    """A function that makes one update with ids from wherever they are; it has made one already."""
    model = tiny_model(np.float32, device, **options)
    parameters = list(model.parameters())
    optimizer = make_optimizer(parameters)

    def step(source, labels):
        optimizer.zero_grad()
        model.loss(source, labels, 0.1).backward()
        optim.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    step(SOURCE, LABELS)
    return step


# --- Training -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "by steps"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("where", ["cuda:0", "cuda:1"])
def test_a_training_step_sends_its_ids_and_waits_for_nothing(stand_in, where, positions, optimizer, fused):
    with minigrad.fused(fused):
        step = training_step(where, optimizer, positions=positions)
        stand_in.clear()
        step(SOURCE, LABELS)
    assert stand_in.uploads == {"asarray": 2}
    assert stand_in.uploaded_bytes == {"asarray": SOURCE.nbytes + LABELS.nbytes}
    assert not stand_in.synchronizations


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "by steps"])
def test_ids_that_are_there_already_are_not_sent(stand_in, fused):
    with minigrad.fused(fused):
        step, ids = training_step("cuda"), (asarray_on("cuda", SOURCE), asarray_on("cuda", LABELS))
        stand_in.clear()
        step(*ids)
    assert not stand_in.uploads
    assert not stand_in.synchronizations


def test_dropout_sends_a_mask_for_each_place_where_it_drops(stand_in):
    step = training_step("cuda", dropout=0.2)
    minigrad.random.set_step(1)
    stand_in.clear()
    step(SOURCE, LABELS)
    masks = minigrad.random.get_state()["call"]
    assert masks == 12  # two embeddings, three attentions, five residuals, two feed-forwards
    assert stand_in.uploads == {"asarray": 2 + masks}
    (batch, long), (_, short), features, heads, inner = SOURCE.shape, LABELS.shape, 8, 2, 12
    source, target = batch * long, batch * short
    encoder = [source * features] * 3 + [batch * heads * long * long, source * inner]
    decoder = [target * features] * 4 + [batch * heads * short * short, batch * heads * short * long, target * inner]
    bits = sum(2 ** math.ceil(math.log2(math.ceil(size / 8))) for size in encoder + decoder)  # see minigrad.random
    assert stand_in.uploaded_bytes == {"asarray": SOURCE.nbytes + LABELS.nbytes + bits}
    assert not stand_in.synchronizations


def test_the_causal_mask_is_made_where_it_is_used(stand_in):
    for where in ("cuda:0", "cuda:1"):
        made = causal_mask(2, 4, where)
        assert f"cuda:{made.device.id}" == where
    assert not stand_in.uploads
    assert to_numpy(made).tolist() == [[True, True, True, False], [True, True, True, True]]


# --- Decoding -------------------------------------------------------------------------------------

WAYS = {
    "greedy": lambda *args: greedy(*args),
    "beam": lambda model, source, length: beam_search(model, source, 3, 1, length),
    "sample": lambda *args: sample(*args),
}


def count_calls(monkeypatch, *methods):
    """A dictionary of how often these methods, each a class and a name, are called from now on."""
    counts = dict.fromkeys((name for _, name in methods), 0)

    def count(owner, name):
        method = getattr(owner, name)

        def counted(self, *args):
            counts[name] += 1
            return method(self, *args)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in methods:
        count(owner, name)
    return counts


@pytest.mark.parametrize("fused", [True, False], ids=["on arrays", "through modules"])
@pytest.mark.parametrize(("way", "sent"), [("greedy", 1), ("beam", 2), ("sample", 2)])
@pytest.mark.parametrize("where", ["cuda:0", "cuda:1"])
def test_a_step_of_decoding_waits_once(stand_in, monkeypatch, where, way, sent, fused):
    """All sentences go on to the greatest length: each step sends tokens and, as the case may be, one more array.

    Through modules it sends all tokens so far, and which rows of the memory they attend to.
    """
    model, source, steps = prefer(peaked_model(2), eos=-100.0).to(where), random_sources(2), 12
    counts = count_calls(monkeypatch, (Steps, "keep"), (OnArrays, "_collect"))
    stand_in.clear()
    with minigrad.fused(fused):
        WAYS[way](model, source, steps)
    assert stand_in.synchronizations == {"get": steps}
    at_first = 1 + (way == "sample") * 2  # the source; sampling chooses its rows before the first step
    without = way == "beam"  # there is one hypothesis at first, which needs no mask
    assert counts["keep"] == 1 + (way == "sample")  # all leave at the end: then there is nothing to choose
    if fused:
        assert stand_in.uploads == {"asarray": at_first + sent * steps - without + counts["_collect"]}


@pytest.mark.parametrize("way", WAYS)
def test_sentences_that_end_cost_two_arrays_in_all_layers_together(stand_in, monkeypatch, way):
    model, source = peaked_model(2, num_decoder_layers=4).to("cuda"), random_sources(2)
    sent, select = [], Steps.keep

    def keep(self, rows):
        before = stand_in.uploads["asarray"]
        select(self, rows)
        if len(rows):
            sent.append(stand_in.uploads["asarray"] - before)

    monkeypatch.setattr(Steps, "keep", keep)
    WAYS[way](model, source, 12)
    assert sent
    assert set(sent) == {2}


def test_a_source_that_is_on_the_device_is_read_back_once_to_count_its_tokens(stand_in):
    model, source = prefer(peaked_model(2), eos=-100.0).to("cuda"), asarray_on("cuda", random_sources(2))
    stand_in.clear()
    greedy(model, source, 5)
    assert stand_in.synchronizations == {"get": 6}
    assert stand_in.uploads == {"asarray": 5}


# --- A real GPU -----------------------------------------------------------------------------------

if cuda_status().devices:  # elsewhere there is no such test, rather than a skipped one

    @pytest.mark.gpu
    @pytest.mark.filterwarnings("ignore:cupyx.allow_synchronize")  # CuPy may overlook a wait; what it sees is one
    def test_cupy_sees_no_wait_in_a_training_step():
        cupyx = pytest.importorskip("cupyx")
        step, ids = training_step("cuda"), (asarray_on("cuda", SOURCE), asarray_on("cuda", LABELS))
        with cupyx.allow_synchronize(False):
            step(*ids)
